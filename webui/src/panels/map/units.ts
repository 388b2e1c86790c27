// What a cell of the map means: its value per unit of both axes, and as text. Pure functions.
import { formatBytes, formatCount, formatNs } from '../../format';
import type { MapOptions, MapValue } from './map_options';

const MIB = 1024 * 1024;

export interface Unit {
  readonly text: (value: number) => string; // of a cell
  readonly what: string; // 'time per token'
}

const NAMES: Readonly<Record<MapValue, string>> = {
  time: 'time',
  bytes: 'bytes',
  accesses: 'accesses',
  faults: 'disk waits',
  bytes_read: 'bytes read',
  bytes_written: 'bytes written',
};
export const valueName = (value: MapValue): string => NAMES[value];

const ROWS: Readonly<Record<string, string>> = { op_kind: 'op type', source: 'memory source' };
export const axisName = (axis: string): string => ROWS[axis] ?? axis;

const number = (value: number): string =>
  value >= 100 || Number.isInteger(value)
    ? formatCount(value)
    : String(Number(value.toPrecision(3)));

// The text of a sum.
export function sumText(value: MapValue, sum: number): string {
  if (value === 'time') return formatNs(sum);
  return value.startsWith('bytes') ? formatBytes(Math.round(sum)) : number(sum);
}

export function unitOf({ x, y, value }: MapOptions, track: string): Unit {
  const perX =
    x === 'token' ? ' per token' : x === 'step' ? ' per step' : x === 'time' ? ' per second' : '';
  const scaleX = x === 'time' ? 1e9 : 1;
  const isMemory = track === 'file' || track === 'buffer';
  const isBytes = value.startsWith('bytes');
  // Bytes per byte: how often each byte was touched.
  if (isMemory && isBytes) {
    if (y === 'file' && value !== 'bytes_written')
      return { text: (cell) => `${number(cell * scaleX)}×`, what: `reads of each byte${perX}` };
    const verb =
      value === 'bytes_read' ? 'read' : value === 'bytes_written' ? 'written' : 'read or written';
    return {
      text: (cell) => `${number(cell * scaleX)}×`,
      what: `how often each byte is ${verb}${perX}`,
    };
  }
  if (isMemory) {
    return {
      text: (cell) => `${sumText(value, cell * scaleX * MIB)}/MiB`,
      what: `${NAMES[value]} per MiB${perX === '' ? '' : ` and${perX.replace(' per', '')}`}`,
    };
  }
  const each =
    track === 'layer' || track === 'phase' || track === 'component'
      ? ''
      : ` and ${axisName(track)}`;
  if (value === 'time' && x === 'time') {
    return { text: (cell) => `${number(100 * cell)} %`, what: 'share of the time' };
  }
  return {
    text: (cell) => sumText(value, cell * scaleX),
    what: perX === '' ? `sum of ${NAMES[value]}` : `${NAMES[value]}${perX}${each}`,
  };
}

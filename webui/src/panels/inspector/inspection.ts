// The content of the inspector: facts, links to related items, and the server's JSON. Pure
// functions.
import type { Selection } from '../../state/view/selection';
import type { Place, PlaceValue } from './place';
import type { Reproduction } from './reproduce';

export interface Fact {
  readonly name: string;
  readonly value: string;
  readonly exact?: string; // used in the tooltip and in copied text
  readonly mono?: boolean;
}

// What matters about the selection: its value, its share of something, its course over the steps.
export interface Figure {
  readonly name: string;
  readonly value: string;
  readonly exact?: string;
  readonly share?: number; // 0..1
  readonly note?: string;
  readonly ofStep?: boolean; // of the whole step: phase, range and filter do not apply
  readonly series?: readonly (number | null)[]; // by step or group of steps; null: not known or left out
}

export interface FactGroup {
  readonly title: string;
  readonly facts: readonly Fact[];
}

export interface Jump {
  readonly text: string;
  readonly detail: string;
  readonly to: Selection | null; // null: not selectable
}

export interface Links {
  readonly title: string;
  readonly jumps: readonly Jump[];
}

// The values of the selection in the selected step.
export type Now = Readonly<Partial<Record<PlaceValue, number>>>;

export interface Inspection {
  readonly kind: string;
  readonly number?: number; // what REST and links call it, if its title does not say it
  readonly title: string;
  readonly figures: readonly Figure[];
  readonly place: Place | null; // its row in the map, with its course over the session
  readonly now: Now | null; // its values in the selected step
  readonly facts: readonly Fact[];
  readonly groups?: readonly FactGroup[];
  readonly links: readonly Links[];
  readonly layer: number | null; // the layer graph that contains it
  readonly accessesOf?: string; // filter of its accesses, which the table can list
  readonly json: unknown;
  readonly copy: Reproduction;
}

// A list of one fact, or of none if the value is missing.
export const fact = (
  name: string,
  value: string | number | null | undefined,
  rest: Partial<Fact> = {},
): readonly Fact[] =>
  value === null || value === undefined || value === ''
    ? []
    : [{ name, value: String(value), ...rest }];

export function inspectionText(what: Inspection): string {
  const { kind, number, title, figures, facts, groups = [], links } = what;
  const name = number === undefined ? kind : `${kind} ${number}`;
  const lines = [`${name}: ${title}`, ...factLines([...figures, ...facts])];
  for (const group of groups) lines.push('', group.title, ...factLines(group.facts));
  for (const { title: of, jumps } of links) {
    if (jumps.length === 0) continue;
    lines.push('', of, ...jumps.map(({ text, detail }) => `  ${text}  ${detail}`.trimEnd()));
  }
  return lines.join('\n');
}

function factLines(facts: readonly Fact[]): readonly string[] {
  const width = Math.max(0, ...facts.map(({ name }) => name.length));
  return facts.map(({ name, value, exact }) => `${name.padEnd(width)}  ${exact ?? value}`);
}

export const inspectionJson = ({ json }: Inspection): string => JSON.stringify(json, null, 2);

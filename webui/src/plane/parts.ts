// What a plane is made of, and what it tells its owner.
import type { ReadonlySignal, Signal } from '@preact/signals';
import type { TipText } from '../ui/tip';
import type { Point } from './gestures';
import type { Hit } from './layout';
import type { Camera } from './camera';
import type { Brush, Marked } from './paint_overlay';
import type { Scale } from './scale';
import type { Scene } from './scene';

export interface PlaneEvents {
  move(camera: Camera): void;
  select(hit: Hit, compare: boolean): void; // compare: with what is selected
  brushed(brush: Brush | null): void; // null: cleared by a click
  pointsAt(hit: Hit | null): void;
}

export interface PlaneParts {
  readonly host: HTMLElement;
  readonly base: HTMLCanvasElement;
  readonly overlay: HTMLCanvasElement;
  readonly rows: HTMLCanvasElement; // the selected rows
  readonly lens: HTMLCanvasElement;
  readonly marks: HTMLElement; // of what is under the pointer
  readonly input: HTMLElement; // on top
  readonly tip: HTMLElement; // beside the host, so that it may cover what is beside it
  readonly scene: ReadonlySignal<Scene | null>;
  readonly camera: ReadonlySignal<Camera>;
  readonly marked: ReadonlySignal<Marked>; // the selection
  readonly brush: ReadonlySignal<Brush | null>;
  readonly pointed: ReadonlySignal<number | null>; // unit of x that another view points at
  readonly theme: ReadonlySignal<unknown>; // changes with the colours of the page
  readonly scale: Signal<Scale>; // set by the plane
  readonly describe: (place: HoverPlace) => TipText | null; // for the tooltip; null: none
  readonly events: PlaneEvents;
}

export interface HoverPlace {
  readonly hit: Hit;
  readonly at: Point;
}

// What the shell remembers only while it runs: which panel is at hand, what its
// commands act on, and which of the shell's own windows are open.
import { signal, type ReadonlySignal } from '@preact/signals';

// What a panel that shows a plane does for the commands of the shell.
export interface Plane {
  zoom(factor: number): void; // below 1: closer
  pan(share: number): void; // of its width; below 0: to the left
  fit(): void;
}

export type Overlay = 'palette' | 'help' | null;

export class Shell {
  readonly active: ReadonlySignal<string | null>; // panel that was used last
  readonly overlay: ReadonlySignal<Overlay>;
  private readonly used = signal<string | null>(null);
  private readonly above = signal<Overlay>(null);
  private readonly planes = new Map<string, Plane>();

  constructor() {
    this.active = this.used;
    this.overlay = this.above;
  }

  activate(panel: string): void {
    this.used.value = panel;
  }

  show(overlay: Overlay): void {
    this.above.value = overlay;
  }

  // The panel's plane while it is drawn; the function that it gives takes it back.
  offer(panel: string, plane: Plane): () => void {
    this.planes.set(panel, plane);
    return () => {
      if (this.planes.get(panel) === plane) this.planes.delete(panel);
    };
  }

  plane(): Plane | null {
    const active = this.used.peek();
    return (active === null ? undefined : this.planes.get(active)) ?? null;
  }
}

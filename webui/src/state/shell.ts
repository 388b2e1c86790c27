// State of the shell that is not stored: the active panel, its zoom and pan controls, and the open
// dialog.
import { signal, type ReadonlySignal } from '@preact/signals';

// Zoom and pan of a panel, used by the shell's commands.
export interface Viewport {
  zoom(factor: number): void; // below 1: zoom in
  pan(share: number): void; // fraction of the width; negative: to the left
  fit(): void;
  zoomToSelection?(): void;
}

export type Overlay = 'palette' | 'help' | null;

export class Shell {
  readonly active: ReadonlySignal<string | null>; // the panel used last
  readonly overlay: ReadonlySignal<Overlay>;
  readonly narrow = signal(false); // the window has no room for several docks side by side
  private readonly activePanel = signal<string | null>(null);
  private readonly openOverlay = signal<Overlay>(null);
  private readonly viewports = new Map<string, Viewport>();

  constructor() {
    this.active = this.activePanel;
    this.overlay = this.openOverlay;
  }

  activate(panel: string): void {
    this.activePanel.value = panel;
  }

  show(overlay: Overlay): void {
    this.openOverlay.value = overlay;
  }

  // Registers the controls of a panel. Returns a function that unregisters them.
  registerViewport(panel: string, viewport: Viewport): () => void {
    this.viewports.set(panel, viewport);
    return () => {
      if (this.viewports.get(panel) === viewport) this.viewports.delete(panel);
    };
  }

  // The controls of the panel used last, else of any: the keys work without a click first.
  viewport(): Viewport | null {
    const active = this.activePanel.peek();
    const known = active === null ? undefined : this.viewports.get(active);
    return known ?? [...this.viewports.values()].at(-1) ?? null;
  }
}

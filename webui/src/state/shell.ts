// State of the shell that is not stored: the active panel, its zoom and pan controls, and the open
// dialog.
import { parseGlossary, type Term } from '../commands/glossary';
import { signal, type ReadonlySignal } from '@preact/signals';

// Zoom and pan of a panel, used by the shell's commands.
export interface Viewport {
  zoom(factor: number): void; // below 1: zoom in
  pan(share: number): void; // fraction of the width; negative: to the left
  fit(): void;
  zoomToSelection?(): void;
  readonly film?: () => Filmed;
}

// What a video shows of a panel: its canvases, one over the other, and its scale.
export interface Filmed {
  readonly host: HTMLElement; // contains the canvases
  readonly canvases: readonly HTMLCanvasElement[];
  readonly legend: {
    readonly what: string;
    readonly least: string;
    readonly most: string;
    readonly colour: (fraction: number) => string; // 0..1
  } | null;
}

export type Overlay = 'palette' | 'help' | null;

export class Shell {
  readonly active: ReadonlySignal<string | null>; // the panel used last
  readonly overlay: ReadonlySignal<Overlay>;
  readonly narrow = signal(false); // the window has no room for several docks side by side
  readonly seeksServerOptions = signal(false); // the settings scroll to them when they are there
  readonly glossary: ReadonlySignal<readonly Term[]>; // empty until a dialog needs it
  readonly term: ReadonlySignal<string | null>; // that the help shows
  private readonly activePanel = signal<string | null>(null);
  private readonly openOverlay = signal<Overlay>(null);
  private readonly terms = signal<readonly Term[]>([]);
  private readonly shownTerm = signal<string | null>(null);
  private readonly viewports = new Map<string, Viewport>();

  constructor() {
    this.active = this.activePanel;
    this.overlay = this.openOverlay;
    this.glossary = this.terms;
    this.term = this.shownTerm;
  }

  activate(panel: string): void {
    this.activePanel.value = panel;
  }

  show(overlay: Overlay, term: string | null = null): void {
    if (overlay !== null) void this.loadGlossary();
    this.shownTerm.value = term;
    this.openOverlay.value = overlay;
  }

  private async loadGlossary(): Promise<void> {
    if (this.terms.peek().length > 0) return;
    const file = await import('../../../docs/glossary.md?raw').catch(() => null);
    if (file) this.terms.value = parseGlossary(file.default);
  }

  // Registers the controls of a panel. Returns a function that unregisters them.
  registerViewport(panel: string, viewport: Viewport): () => void {
    this.viewports.set(panel, viewport);
    return () => {
      if (this.viewports.get(panel) === viewport) this.viewports.delete(panel);
    };
  }

  // The panel that a video shows; null: none that can be filmed is open.
  filmed(): Filmed | null {
    const active = this.activePanel.peek();
    const all = [...this.viewports].sort(([a], [b]) => Number(b === active) - Number(a === active));
    return all.find(([, of]) => of.film)?.[1].film?.() ?? null;
  }

  // The controls of the panel used last, else of any: the keys work without a click first.
  viewport(): Viewport | null {
    const active = this.activePanel.peek();
    const known = active === null ? undefined : this.viewports.get(active);
    return known ?? [...this.viewports.values()].at(-1) ?? null;
  }
}

// The debugger of the page (docs/debug.md): the breakpoints of the next run, and where the run of the
// open session is stopped. The breakpoints are kept per tab, as the draft of the request.
import { batch, computed, effect, signal, untracked, type ReadonlySignal } from '@preact/signals';
import { errorText, type Api } from '../../net/api';
import type {
  DebugCommand,
  DebugPlace,
  DebugState,
  DebugStop,
  GenerateRequest,
} from '../../net/types';
import { opsNamedBy, type PlacedOp } from './breakpoint_place';
import type { DebugOptions } from './chat';
import type { OpenSession } from '../session/open_session';
import type { Toasts } from '../toasts';

export interface Breakpoint {
  readonly text: string; // its grammar is that of the server
  readonly on: boolean;
}

// How long a stop lasts: as long as a person needs to read and think. It holds up the requests that wait
// for the model.
export const HOLDS_MS = [60_000, 300_000, 1_800_000, 3_600_000] as const;
const DEFAULT_HOLD_MS = 300_000;
const STOPPED_MS = 1000; // interval for reading the time that is left, and what other clients did
const RUNNING_MS = 150; // the live message of a stop at the same op does not differ from the one before
const KEY = 'tensor-trace.breakpoints';

// The breakpoint at the op with this output. Words of a breakpoint are separated by spaces.
export const breakpointAt = (output: string): string =>
  `^${output.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replace(/\s/g, '.')}$`;

const isAt = (text: string, output: string): boolean =>
  text.split(/\s+/).includes(breakpointAt(output));

export type Mark = 'stopped' | 'on' | 'off' | '';
export type Until = NonNullable<DebugCommand['until']>;

interface Parts {
  readonly api: Pick<Api, 'debug' | 'debugCommand'>;
  readonly open: ReadonlySignal<OpenSession | null>;
  readonly toasts: Pick<Toasts, 'error'>;
  readonly storage: Pick<Storage, 'getItem' | 'setItem'> | null;
  // `isFirst`: the first stop of a run that this page started.
  readonly stopped: (place: DebugPlace, isFirst: boolean) => void;
}

interface Stored {
  readonly breakpoints: readonly Breakpoint[];
  readonly atStart: boolean;
  readonly holdMs: number;
}

export class Debug {
  readonly breakpoints: ReadonlySignal<readonly Breakpoint[]>;
  readonly atStart: ReadonlySignal<boolean>; // stop before the first op
  readonly holdMs: ReadonlySignal<number>; // of the next run
  // Of the run of the open session that has stopped; null: it has not, or it has ended.
  readonly state: ReadonlySignal<DebugState | null>;
  // Where it is stopped, and while it goes on, where it was.
  readonly stop: ReadonlySignal<DebugStop | null>;
  readonly isRunning: ReadonlySignal<boolean>; // it goes on
  readonly problem: ReadonlySignal<string | null>; // of a breakpoint
  readonly stepsBy = signal(1); // ops, layers or tokens at a time
  // Changes with each mark.
  readonly marks: ReadonlySignal<readonly [readonly Breakpoint[], string | null]>;
  private readonly stored = signal<Stored>(loadStored(null));
  private readonly named = computed(() =>
    this.stored.value.breakpoints.map(({ text, on }) => ({ names: opsNamedBy(text), on })),
  );
  private readonly latest = signal<DebugState | null>(null);
  private readonly lastStop = signal<DebugStop | null>(null);
  private readonly rejection = signal<string | null>(null);
  private readonly requests = new Map<string, GenerateRequest>(); // that this page sent, by session
  private readonly parts: Parts;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private shown: { readonly session: string; readonly stop: number } | null = null;

  constructor(parts: Parts) {
    this.parts = parts;
    this.stored.value = loadStored(parts.storage);
    this.breakpoints = computed(() => this.stored.value.breakpoints);
    this.atStart = computed(() => this.stored.value.atStart);
    this.holdMs = computed(() => this.stored.value.holdMs);
    this.state = this.latest;
    this.stop = this.lastStop;
    this.isRunning = computed(() => this.lastStop.value !== null && !this.latest.value?.stop);
    this.problem = this.rejection;
    const at = computed(() => (this.latest.value?.stop ?? null)?.place.tensor_name ?? null);
    this.marks = computed(() => [this.stored.value.breakpoints, at.value] as const);
  }

  start(): void {
    const told = computed(() => {
      const session = this.parts.open.value;
      const run = session?.active.value === true ? session.run.value : null; // else there is none to stop
      return { session, where: run?.stopped ?? null, active: run !== null };
    });
    const key = computed(() => {
      const { session, where, active } = told.value;
      return `${session?.id ?? ''} ${active} ${where ?? ''}`;
    });
    effect(() => {
      void key.value;
      untracked(() => {
        const { session, where, active } = told.peek();
        if (!session || !active) this.clear();
        else if (where !== null) void this.read(session);
        else if (this.shown?.session !== session.id) this.clear();
        else this.goesOn(session);
      });
    });
  }

  // ---- Breakpoints --------------------------------------------------------------------

  // The fields of the next request.
  options(): DebugOptions {
    const { breakpoints, atStart, holdMs } = this.stored.peek();
    const texts = breakpoints.filter(({ on }) => on).map(({ text }) => text);
    if (texts.length === 0 && !atStart) return {};
    return {
      ...(texts.length > 0 ? { breakpoints: texts } : {}),
      ...(atStart ? { stop_at_first_op: true } : {}),
      hold_ms: holdMs,
    };
  }

  stopAtStart(atStart: boolean): void {
    this.store({ atStart });
  }

  holdFor(holdMs: number): void {
    this.store({ holdMs });
  }

  // Returns whether it was added: a run that is stopped checks it, otherwise the next run does.
  async add(text: string): Promise<boolean> {
    const line = text.trim();
    this.rejection.value = null;
    if (line === '' || this.stored.peek().breakpoints.some((one) => one.text === line))
      return line !== '';
    if (!(await this.tell({ break: line }))) return false;
    this.store({ breakpoints: [...this.stored.peek().breakpoints, { text: line, on: true }] });
    return true;
  }

  async remove(text: string): Promise<void> {
    this.rejection.value = null;
    this.store({ breakpoints: this.stored.peek().breakpoints.filter((one) => one.text !== text) });
    await this.withdraw(text);
  }

  // Switched at once, and back if the run refuses it.
  async enable(text: string, on: boolean): Promise<void> {
    this.switchTo(text, on);
    if (!on) await this.withdraw(text);
    else if (!(await this.tell({ break: text }))) this.switchTo(text, false);
  }

  // Sets a breakpoint at the op with this output, or removes those that are there.
  toggleAt(output: string): void {
    const there = this.stored.peek().breakpoints.filter(({ text }) => isAt(text, output));
    if (there.length === 0) void this.add(breakpointAt(output));
    for (const { text } of there) void this.remove(text);
  }

  // Whether the breakpoint that toggleAt sets and removes is on; null: there is none.
  breakpointOf(output: string): boolean | null {
    const there = this.stored.value.breakpoints.filter(({ text }) => isAt(text, output));
    return there.length === 0 ? null : there.some(({ on }) => on);
  }

  // Of all breakpoints that name the op.
  markOf(op: PlacedOp): Mark {
    if (this.marks.value[1] === op.output) return 'stopped';
    const there = this.named.value.filter(({ names }) => names(op));
    return there.length === 0 ? '' : there.some(({ on }) => on) ? 'on' : 'off';
  }

  // ---- The run ------------------------------------------------------------------------

  started(session: string, request: GenerateRequest): void {
    this.rejection.value = null;
    this.requests.set(session, request);
  }

  // The request that this page sent; undefined: another one did.
  requestOf(session: string): GenerateRequest | undefined {
    return this.requests.get(session);
  }

  rejected(detail: string, { breakpoints }: GenerateRequest): void {
    if (breakpoints) this.rejection.value = detail;
  }

  // By so many ops, layers or tokens, if it does not go on to a breakpoint.
  goOn(until: Until): void {
    const count = until === 'breakpoint' ? 1 : this.stepsBy.peek();
    const session = this.parts.open.peek();
    const state = this.latest.peek();
    if (!session || !state?.stop) return;
    this.latest.value = { ...state, stop: null };
    void this.command({ until, count }).then((error) => {
      if (error !== null) this.parts.toasts.error(error);
    });
  }

  // Stops before the next op.
  async pause(): Promise<void> {
    const error = await this.command({ stop: true });
    if (error !== null) this.parts.toasts.error(error);
  }

  // Changes the output of the op at which the run is stopped, and if it is kept, that of the same op in all
  // later steps. Returns the error.
  change(text: string, keep: boolean): Promise<string | null> {
    return this.command(keep ? { change: text, keep } : { change: text });
  }

  // Ends a kept change.
  async release(number: number): Promise<void> {
    const error = await this.command({ release: number });
    if (error !== null) this.parts.toasts.error(error);
  }

  // ---- Internals ----------------------------------------------------------------------

  private clear(): void {
    clearTimeout(this.timer);
    this.latest.value = this.lastStop.value = null;
  }

  private goesOn(session: OpenSession): void {
    const state = this.latest.peek();
    if (state?.stop) this.latest.value = { ...state, stop: null };
    this.readLater(session);
  }

  // A run that is being cancelled ends at any time, and then has no state.
  private async read(session: OpenSession): Promise<void> {
    if (session.stopping.peek()) return;
    const answer = await this.parts.api.debug(session.id);
    if (this.parts.open.peek() !== session || !session.active.peek()) return;
    if (answer.ok) this.take(session, answer.value);
    else this.readLater(session);
  }

  private take(session: OpenSession, state: DebugState): void {
    const { stop } = state;
    batch(() => {
      this.latest.value = state;
      if (stop) this.lastStop.value = stop;
    });
    // No live message tells this page of steps that ended before it subscribed.
    const { data, feed } = session;
    const step = stop?.place.step ?? 0;
    if (step > 0 && (data.steps.length < step || data.hasGaps())) void feed.pull();
    this.readLater(session);
    const { shown } = this;
    if (!stop || (shown?.session === session.id && shown.stop === stop.number)) return;
    this.shown = { session: session.id, stop: stop.number };
    const isFirst = shown?.session !== session.id && this.requests.has(session.id);
    this.parts.stopped(stop.place, isFirst);
  }

  // A run that is not stopped may end at any time: only its status is asked for.
  private readLater(session: OpenSession): void {
    clearTimeout(this.timer);
    const isStopped = Boolean(this.latest.peek()?.stop);
    this.timer = setTimeout(
      () => {
        void session.refreshRun().then(() => {
          if (this.parts.open.peek() !== session || !session.active.peek()) return;
          if ((session.run.peek()?.stopped ?? null) !== null) void this.read(session);
          else this.readLater(session);
        });
      },
      isStopped ? STOPPED_MS : RUNNING_MS,
    );
  }

  private async command(body: DebugCommand): Promise<string | null> {
    const session = this.parts.open.peek();
    if (!session) return null;
    const answer = await this.parts.api.debugCommand(session.id, body);
    if (!answer.ok) return errorText(answer.error);
    if (this.parts.open.peek() === session && session.active.peek())
      this.take(session, answer.value);
    return null;
  }

  // Tells the run of a breakpoint, if it can be stopped. Returns whether it is valid.
  private async tell(body: DebugCommand): Promise<boolean> {
    if (this.lastStop.peek() === null) return true;
    this.rejection.value = await this.command(body);
    return this.rejection.peek() === null;
  }

  private async withdraw(text: string): Promise<void> {
    const known = this.latest.peek()?.breakpoints.find((one) => one.text === text);
    if (known) await this.tell({ delete: known.number });
  }

  private switchTo(text: string, on: boolean): void {
    const { breakpoints } = this.stored.peek();
    this.store({ breakpoints: breakpoints.map((one) => (one.text === text ? { text, on } : one)) });
  }

  private store(change: Partial<Stored>): void {
    this.stored.value = { ...this.stored.peek(), ...change };
    try {
      this.parts.storage?.setItem(KEY, JSON.stringify(this.stored.peek()));
    } catch {
      // Storage is optional.
    }
  }
}

function loadStored(storage: Parts['storage']): Stored {
  try {
    const stored = JSON.parse(storage?.getItem(KEY) ?? '{}') as Partial<Stored>;
    const { breakpoints, atStart, holdMs } = stored;
    return {
      breakpoints: Array.isArray(breakpoints) ? breakpoints : [],
      atStart: atStart === true,
      holdMs: HOLDS_MS.find((one) => one === holdMs) ?? DEFAULT_HOLD_MS,
    };
  } catch {
    return { breakpoints: [], atStart: false, holdMs: DEFAULT_HOLD_MS };
  }
}

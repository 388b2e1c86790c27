// The memory budget of the current model: its state and plan on the server, polled while it has
// users, and how speed and disk reads developed under each setting.
import { signal, type ReadonlySignal } from '@preact/signals';
import { errorText, type Api, type ApiError } from '../../net/api';
import type { Memory, MemoryOptions, MemoryPlan } from '../../net/types';
import { SpeedHistory, type SpeedSample } from '../session/speed_history';
import type { Toasts } from '../toasts';

const STATE_MS = 500;
const PLAN_MS = 1000;

// What was in force, and the mean of its samples.
export interface BudgetSetting {
  readonly text: string;
  readonly samples: number;
  readonly tokensPerSecond: number;
  readonly bytesPerToken: number;
}

// Repeats work while it has users and the page can be seen.
class Poll {
  private users = 0;
  private isRunning = false;
  private readonly work: () => Promise<void>;
  private readonly ms: number;

  constructor(ms: number, work: () => Promise<void>) {
    this.ms = ms;
    this.work = work;
  }

  // Until the returned function is called.
  use(): () => void {
    this.users += 1;
    if (!this.isRunning) void this.run();
    return () => {
      this.users -= 1;
    };
  }

  private async run(): Promise<void> {
    this.isRunning = true;
    while (this.users > 0) {
      if (!document.hidden) await this.work();
      await new Promise((done) => setTimeout(done, this.ms));
    }
    this.isRunning = false;
  }
}

export type BudgetApi = Pick<Api, 'memory' | 'setMemory' | 'memoryPlan'>;

export class MemoryBudget {
  readonly state: ReadonlySignal<Memory | null>;
  readonly plan: ReadonlySignal<MemoryPlan | null>;
  readonly error: ReadonlySignal<ApiError | null>;
  readonly history = new SpeedHistory();
  readonly version: ReadonlySignal<number>; // changes with the history
  readonly settings: ReadonlySignal<readonly BudgetSetting[]>;
  readonly chosen: ReadonlySignal<number | null>; // bytes; null: what is in force
  private readonly latest = signal<Memory | null>(null);
  private readonly latestPlan = signal<MemoryPlan | null>(null);
  private readonly lastError = signal<ApiError | null>(null);
  private readonly historyVersion = signal(0);
  private readonly chosenBytes = signal<number | null>(null);
  private readonly allSettings = signal<readonly BudgetSetting[]>([]);
  private readonly api: BudgetApi;
  private readonly toasts: Toasts;
  private readonly changed: () => void;
  private readonly run: () => string;
  private readonly now: () => number;
  private readonly statePoll = new Poll(STATE_MS, () => this.readState());
  private readonly planPoll = new Poll(PLAN_MS, () => this.readPlan());

  // `changed`: the budget was changed, and the server may load the model again. `run`: the ID of the
  // open session.
  constructor(
    readonly model: string,
    api: BudgetApi,
    toasts: Toasts,
    changed: () => void,
    run: () => string,
    now: () => number = () => performance.now(),
  ) {
    this.api = api;
    this.toasts = toasts;
    this.changed = changed;
    this.run = run;
    this.now = now;
    this.state = this.latest;
    this.plan = this.latestPlan;
    this.error = this.lastError;
    this.version = this.historyVersion;
    this.settings = this.allSettings;
    this.chosen = this.chosenBytes;
  }

  // Polls until the returned function is called.
  use(): () => void {
    const stops = [this.statePoll.use(), this.planPoll.use()];
    return () => {
      for (const stop of stops) stop();
    };
  }

  // Polls only the plan.
  usePlan(): () => void {
    return this.planPoll.use();
  }

  // Kept while the page is open: the panel may be closed meanwhile.
  choose(bytes: number): void {
    this.chosenBytes.value = bytes;
  }

  // Whether the measured figures are of what is in force now.
  isMeasured(state: Memory): boolean {
    const last = this.allSettings.value[this.history.setting.at(-1) ?? -1];
    return last?.text === settingText(state);
  }

  async change(options: MemoryOptions): Promise<void> {
    if (options.budget !== undefined) this.chosenBytes.value = null;
    const result = await this.api.setMemory(this.model, options);
    this.changed();
    if (result.ok) this.accept(result.value);
    else this.toasts.error(`The budget was not changed: ${errorText(result.error)}`);
    await this.readPlan();
  }

  private async readState(): Promise<void> {
    const result = await this.api.memory(this.model);
    this.lastError.value = result.ok ? null : result.error;
    if (result.ok) this.accept(result.value);
  }

  private async readPlan(): Promise<void> {
    const result = await this.api.memoryPlan(this.model);
    // What is in memory may have changed since: an older plan is not shown.
    this.latestPlan.value = result.ok ? result.value : null;
  }

  accept(state: Memory): void {
    const before = this.latest.peek();
    this.latest.value = state;
    const { tokens_per_second: speed, bytes_per_token: bytes } = state;
    // Unchanged figures mean that no token was generated since.
    const isNew = before?.tokens_per_second !== speed || before.bytes_per_token !== bytes;
    if (speed === null || !isNew) return;
    const text = settingText(state);
    const settings = [...this.allSettings.peek()];
    let setting = settings.findIndex((one) => one.text === text);
    if (setting < 0) {
      setting = settings.length;
      settings.push({ text, samples: 0, tokensPerSecond: 0, bytesPerToken: 0 });
    }
    const sample = {
      atMs: this.now(),
      setting,
      run: this.run(),
      tokensPerSecond: speed,
      bytesPerToken: bytes,
    };
    this.history.push(sample);
    this.historyVersion.value += 1;
    const of = settings[setting];
    if (of) settings[setting] = withSample(of, sample);
    this.allSettings.value = settings;
  }
}

function withSample(setting: BudgetSetting, sample: SpeedSample): BudgetSetting {
  const samples = setting.samples + 1;
  const mean = (old: number, value: number): number => old + (value - old) / samples;
  // By the mean time of a token: a mean of speeds would be nearly that of the fastest run.
  const seconds =
    setting.samples === 0
      ? 1 / sample.tokensPerSecond
      : mean(1 / setting.tokensPerSecond, 1 / sample.tokensPerSecond);
  return {
    ...setting,
    samples,
    tokensPerSecond: 1 / seconds,
    bytesPerToken: mean(setting.bytesPerToken, sample.bytesPerToken),
  };
}

function settingText({ budget, pin, prefetch, phase }: Memory): string {
  if (budget === 'off' || phase !== 'active') return 'no plan';
  const size = budget === 'auto' ? 'auto' : `${Math.round(budget / (1 << 20))} MiB`;
  const parts = [pin ? 'pinned' : null, prefetch ? 'read ahead' : null].filter(Boolean);
  return `${size}, ${parts.join(' and ')}`;
}

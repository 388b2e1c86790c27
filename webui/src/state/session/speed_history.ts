// How speed and disk reads developed: the newest samples, the oldest first, as columns of numbers.
// They are kept as long as the page, so they are no objects.
const KEPT_SAMPLES = 480; // four minutes

export interface SpeedSample {
  readonly atMs: number;
  readonly setting: number; // index into the settings
  readonly run: string; // the session; another one begins a new line in the charts
  readonly tokensPerSecond: number;
  readonly bytesPerToken: number;
}

export class SpeedHistory {
  private count = 0;
  private readonly columns = {
    atMs: new Float64Array(KEPT_SAMPLES),
    tokensPerSecond: new Float64Array(KEPT_SAMPLES),
    bytesPerToken: new Float64Array(KEPT_SAMPLES),
    setting: new Int32Array(KEPT_SAMPLES),
    run: new Int32Array(KEPT_SAMPLES),
  };
  private run = ''; // of the newest sample
  private runNumber = 0;

  get length(): number {
    return this.count;
  }

  // The columns are valid until the next sample.
  get atMs(): Float64Array {
    return this.columns.atMs.subarray(0, this.count);
  }

  get tokensPerSecond(): Float64Array {
    return this.columns.tokensPerSecond.subarray(0, this.count);
  }

  get bytesPerToken(): Float64Array {
    return this.columns.bytesPerToken.subarray(0, this.count);
  }

  get setting(): Int32Array {
    return this.columns.setting.subarray(0, this.count);
  }

  // The same number: the same run, without another one between.
  get runs(): Int32Array {
    return this.columns.run.subarray(0, this.count);
  }

  push(sample: SpeedSample): void {
    if (this.count === KEPT_SAMPLES) this.dropOldest();
    if (sample.run !== this.run || this.count === 0) this.runNumber += 1;
    this.run = sample.run;
    const { columns, count } = this;
    columns.atMs[count] = sample.atMs;
    columns.tokensPerSecond[count] = sample.tokensPerSecond;
    columns.bytesPerToken[count] = sample.bytesPerToken;
    columns.setting[count] = sample.setting;
    columns.run[count] = this.runNumber;
    this.count += 1;
  }

  private dropOldest(): void {
    for (const column of Object.values(this.columns)) column.copyWithin(0, 1);
    this.count -= 1;
  }
}

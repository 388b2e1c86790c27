// Sampling and trace settings of the next run.
import { useSignal } from '@preact/signals';
import type { Level, TimingMode } from '../../net/types';
import { serverStatsPattern, type Settings } from '../../state/settings';
import type { Store } from '../../state/store';

type NumberKey =
  'maxTokens' | 'temperature' | 'topK' | 'topP' | 'minP' | 'repeatPenalty' | 'repeatLastN';

interface NumberField {
  readonly key: NumberKey;
  readonly label: string;
  readonly hint: string;
  readonly min: number;
  readonly max: number;
  readonly step: number;
}

// prettier-ignore
const NUMBERS: readonly NumberField[] = [
  { key: 'maxTokens', label: 'Max tokens', hint: 'The answer ends after that many; 0 only reads the prompt', min: 0, max: 1_000_000, step: 1 },
  { key: 'temperature', label: 'Temperature', hint: '0 always takes the likeliest token', min: 0, max: 5, step: 0.05 },
  { key: 'topK', label: 'Top-k', hint: 'Only the k likeliest tokens; 0 takes all', min: 0, max: 1_000_000, step: 1 },
  { key: 'topP', label: 'Top-p', hint: 'The likeliest tokens that together reach p', min: 0, max: 1, step: 0.01 },
  { key: 'minP', label: 'Min-p', hint: 'Tokens at least p times as likely as the likeliest', min: 0, max: 1, step: 0.01 },
  { key: 'repeatPenalty', label: 'Repeat penalty', hint: '1 leaves repetition alone', min: 0.5, max: 5, step: 0.05 },
  { key: 'repeatLastN', label: 'over the last', hint: 'Tokens that the penalty looks at; -1: all', min: -1, max: 1_000_000, step: 1 },
];

const LEVELS: readonly { value: Level; text: string }[] = [
  { value: 'detailed', text: 'detailed: every op and access' },
  { value: 'verbose', text: 'verbose: and statistics of outputs' },
  { value: 'minimal', text: 'minimal: steps without ops' },
  { value: 'off', text: 'off: tokens only' },
];

const TIMINGS: readonly { value: TimingMode; text: string }[] = [
  { value: 'fast', text: 'fast: full speed' },
  { value: 'exact', text: 'exact: op by op' },
];

export function RunSettings({ store }: { store: Store }) {
  const settings = store.settings.chosen.value;
  const embeds = store.models.current.value?.embedding_only === true;
  const set = (change: Partial<Settings>): void => {
    store.settings.set(change);
  };
  return (
    <div class="fields">
      {store.chat.mode.value === 'chat' && <SystemMessage store={store} />}
      {!embeds && <Sampling settings={settings} set={set} />}
      <Trace settings={settings} set={set} />
    </div>
  );
}

function SystemMessage({ store }: { store: Store }) {
  return (
    <label class="wide" title="Said to the model before the conversation">
      <span>System</span>
      <textarea
        rows={1}
        placeholder="nothing"
        value={store.chat.draft.value.system}
        onInput={(event) => {
          store.chat.write({ system: event.currentTarget.value });
        }}
      />
    </label>
  );
}

interface Part {
  readonly settings: Settings;
  readonly set: (change: Partial<Settings>) => void;
}

type NumberProps = Pick<NumberField, 'min' | 'max' | 'step'> & {
  readonly value: number;
  readonly set: (value: number) => void;
};

// What is being typed is no number yet, perhaps ("1."): it is one when the field is left. The
// page may be rendered until then, and leaves what stands there.
function NumberInput({ value, set, ...bounds }: NumberProps) {
  const typed = useSignal<string | null>(null);
  return (
    <input
      type="number"
      required
      {...bounds}
      value={typed.value ?? value}
      onInput={(event) => {
        typed.value = event.currentTarget.value;
      }}
      onChange={({ currentTarget: { validity, valueAsNumber } }) => {
        if (!validity.valid) return;
        typed.value = null;
        set(valueAsNumber);
      }}
    />
  );
}

function Sampling({ settings, set }: Part) {
  return (
    <>
      {NUMBERS.map(({ key, label, hint, ...bounds }) => (
        <label key={key} title={hint}>
          <span>{label}</span>
          <NumberInput
            {...bounds}
            value={settings[key]}
            set={(value) => {
              set({ [key]: value });
            }}
          />
        </label>
      ))}
      <label title="The same seed gives the same answer; empty draws a new one each time">
        <span>Seed</span>
        <input
          type="text"
          inputMode="numeric"
          placeholder="random"
          value={settings.seed}
          onInput={(event) => {
            set({ seed: event.currentTarget.value });
          }}
        />
      </label>
      <div class="checks">
        <label class="check" title="Goes on where the model would end its answer">
          <input
            type="checkbox"
            checked={settings.ignoreEos}
            onChange={(event) => {
              set({ ignoreEos: event.currentTarget.checked });
            }}
          />
          <span>Ignore end of text</span>
        </label>
        <label
          class="check"
          title="Does not compute again what the cache still holds of the prompt"
        >
          <input
            type="checkbox"
            checked={settings.reusePrefix}
            onChange={(event) => {
              set({ reusePrefix: event.currentTarget.checked });
            }}
          />
          <span>Reuse prefix</span>
        </label>
      </div>
      <label
        class="wide"
        title="The answer ends before any of these; one per line, \n is a new line"
      >
        <span>Stop at</span>
        <textarea
          class="mono"
          rows={1}
          placeholder="nothing"
          value={settings.stop}
          onInput={(event) => {
            set({ stop: event.currentTarget.value });
          }}
        />
      </label>
    </>
  );
}

function Trace({ settings, set }: Part) {
  return (
    <>
      <label class="wide" title="What is recorded of the run">
        <span>Trace</span>
        <select
          value={settings.level}
          onChange={(event) => {
            set({ level: event.currentTarget.value as Level });
          }}
        >
          {LEVELS.map(({ value, text }) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <label class="wide" title="Exact stops after every op, which takes longer">
        <span>Timing</span>
        <select
          value={settings.timing}
          onChange={(event) => {
            set({ timing: event.currentTarget.value as TimingMode });
          }}
        >
          {TIMINGS.map(({ value, text }) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </label>
      {settings.level === 'verbose' && (
        <label class="wide" title="Regular expression over tensor names">
          <span>Statistics of</span>
          <input
            type="text"
            class="mono"
            placeholder={serverStatsPattern}
            value={settings.statsPattern}
            onInput={(event) => {
              set({ statsPattern: event.currentTarget.value });
            }}
          />
        </label>
      )}
    </>
  );
}

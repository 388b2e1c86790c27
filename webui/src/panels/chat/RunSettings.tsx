// Sampling and trace settings of the next run.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Level, TimingMode } from '../../net/types';
import { CAPTURE_TITLES, hasValues } from '../../state/request/request';
import { defaultStatsPattern, type Settings } from '../../state/request/settings';
import type { Store } from '../../state/store';
import { serverOptionsText } from '../../state/request/server_options';
import { Check } from '../../ui/Check';

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
  { key: 'maxTokens', label: 'Max tokens', hint: 'Maximum number of generated tokens; 0: process the prompt only', min: 0, max: 1_000_000, step: 1 },
  { key: 'temperature', label: 'Temperature', hint: '0: always take the most likely token', min: 0, max: 5, step: 0.05 },
  { key: 'topK', label: 'Top-k', hint: 'Sample from the k most likely tokens; 0: all', min: 0, max: 1_000_000, step: 1 },
  { key: 'topP', label: 'Top-p', hint: 'Sample from the most likely tokens with a cumulative probability of p', min: 0, max: 1, step: 0.01 },
  { key: 'minP', label: 'Min-p', hint: 'Minimum probability of a token, relative to the most likely one', min: 0, max: 1, step: 0.01 },
  { key: 'repeatPenalty', label: 'Repeat penalty', hint: '1: no penalty', min: 0.5, max: 5, step: 0.05 },
  { key: 'repeatLastN', label: 'Repeat last n', hint: 'Number of last tokens that the penalty considers; -1: all', min: -1, max: 1_000_000, step: 1 },
];

const LEVELS: readonly { value: Level; text: string }[] = [
  { value: 'detailed', text: 'detailed: every op and access' },
  { value: 'verbose', text: 'verbose: also values of outputs' },
  { value: 'minimal', text: 'minimal: steps, without ops' },
  { value: 'off', text: 'off: not recorded' },
];

const TIMINGS: readonly { value: TimingMode; text: string }[] = [
  { value: 'fast', text: 'fast: measured in passing' },
  { value: 'exact', text: 'exact: op by op, slower' },
];

export function RunSettings({ store }: { store: Store }) {
  const settings = store.settings.current.value;
  const embeds = store.models.current.value?.embedding_only === true;
  const set = (change: Partial<Settings>): void => {
    store.settings.set(change);
  };
  return (
    <div class="fields">
      {store.chat.mode.value === 'chat' && <SystemMessage store={store} />}
      {!embeds && <Sampling settings={settings} set={set} />}
      <Trace settings={settings} set={set} />
      <OfServer store={store} />
    </div>
  );
}

// What is no setting of a run, with its option and the value of the loaded model.
function OfServer({ store }: { store: Store }) {
  const model = store.models.current.value;
  const line = useRef<HTMLParagraphElement>(null);
  const isSought = store.shell.seeksServerOptions.value;
  useEffect(() => {
    if (!isSought) return;
    line.current?.scrollIntoView({ block: 'nearest' });
    store.shell.seeksServerOptions.value = false;
  }, [isSought]);
  if (!store.hasServer) return null;
  return (
    <p ref={line} class="model-note server-options">
      Set when the server starts, such as <code>tt-server -t 4 -fa off</code>:{' '}
      {serverOptionsText(model)}.
    </p>
  );
}

function SystemMessage({ store }: { store: Store }) {
  return (
    <label class="wide" title="System message, sent before the conversation">
      <span>System</span>
      <textarea
        rows={1}
        placeholder="none"
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

// Text that is being typed may not be a number yet ("1."). The value is set when the field loses
// focus; until then a render keeps the typed text.
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
      <label title="Seed of the sampler; empty: a random seed for each run">
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
        <Check
          text="Ignore end of text"
          hint="Never choose a token that ends the text"
          on={settings.ignoreEos}
          set={(ignoreEos) => {
            set({ ignoreEos });
          }}
        />
        <Check
          text="Reuse prefix"
          hint="Reuse the KV cache of the common prefix of the prompt"
          on={settings.reusePrefix}
          set={(reusePrefix) => {
            set({ reusePrefix });
          }}
        />
      </div>
      <label
        class="wide"
        title="Further samplers, with the names and defaults of llama-server, as JSON. For example: presence_penalty, frequency_penalty, typical_p, top_n_sigma, xtc_probability, dry_multiplier, mirostat, dynatemp_range, min_keep, samplers, logit_bias, grammar"
      >
        <span>More samplers</span>
        <textarea
          class="mono"
          rows={1}
          placeholder='none; for example {"dry_multiplier": 0.8}'
          value={settings.moreSampling}
          onInput={(event) => {
            set({ moreSampling: event.currentTarget.value });
          }}
        />
      </label>
      <label
        class="wide"
        title="Generation stops before any of these strings. One per line; \n is a line break"
      >
        <span>Stop strings</span>
        <textarea
          class="mono"
          rows={1}
          placeholder="none"
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
      <label
        class="wide"
        title="How much of the run is recorded; verbose adds statistics of the outputs of ops"
      >
        <span>Level</span>
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
      <label
        class="wide"
        title="How ops are timed; fast: the clock is read after each op, which does not slow the run down; exact: the ops run one by one"
      >
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
      <div class="checks">
        <Check
          text="Minor page faults: each one, with op and tensor"
          hint="Record also each page fault that did not wait for the disk, with op and tensor: SQL table fault"
          on={settings.minorFaults}
          set={(minorFaults) => {
            set({ minorFaults });
          }}
        />
        <Check
          text="What is in memory: of the model, each second"
          hint="Record which parts of the model files are in memory, before steps, at most once a second: shown in the map with X: all, and in SQL table residency"
          on={settings.residency}
          set={(residency) => {
            set({ residency });
          }}
        />
        {hasValues(settings) && (
          <>
            <Check
              text={`${CAPTURE_TITLES.attention}: which tokens each head looks at`}
              hint="Capture the attention weights of each layer, head and token: shown in Analytics, Attention. The whole prompt is evaluated again. The size grows with the square of the number of tokens"
              on={settings.attention}
              set={(attention) => {
                set({ attention });
              }}
            />
            <Check
              text={`${CAPTURE_TITLES.lens}: what the model would say after each layer`}
              hint="Capture the most likely tokens after each layer, and how likely each chosen token was: shown in Analytics, Logit lens. Between two tokens, the output weight is read once more for each layer"
              on={settings.lens}
              set={(lens) => {
                set({ lens });
              }}
            />
            <Check
              text={`${CAPTURE_TITLES.residual}: what each layer adds`}
              hint="Capture the residual stream before and after each layer: shown in Analytics, Logit lens. The size grows with the number of tokens"
              on={settings.residual}
              set={(residual) => {
                set({ residual });
              }}
            />
            <Check
              text={`${CAPTURE_TITLES.router}: which experts were nearly chosen`}
              hint="Capture by what the routers of a mixture of experts choose: shown in Analytics, Experts"
              on={settings.router}
              set={(router) => {
                set({ router });
              }}
            />
          </>
        )}
      </div>
      {hasValues(settings) && (
        <label
          class="wide"
          title="Capture the outputs of ops, by rules as of tt record --capture, separated by spaces: a regular expression for their names, then @L of the layers, @T of the tokens, @S of the steps, @I inputs instead, @RN the last N rows, @KN the N largest values of each row, @F16. Read them in SQL, table value, or with tt values"
        >
          <span>Values of</span>
          <input
            type="text"
            class="mono"
            placeholder="l_out@L0-3@R1"
            value={settings.captureRules}
            onInput={(event) => {
              set({ captureRules: event.currentTarget.value });
            }}
          />
        </label>
      )}
      {settings.level === 'verbose' && (
        <label class="wide" title="Regular expression that matches tensor names">
          <span>Statistics of</span>
          <input
            type="text"
            class="mono"
            placeholder={defaultStatsPattern}
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

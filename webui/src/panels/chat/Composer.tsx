// The request form: a message, text or token IDs, with sampling and trace settings.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { formatCount, plural } from '../../format';
import { modelNotes } from '../../state/request/model_facts';
import { messagesOf } from '../../state/request/chat';
import type { PromptMode } from '../../state/request/request';
import type { Store } from '../../state/store';
import { Segmented } from '../../ui/Segmented';
import { lazy } from '../../ui/lazy';
import { settingsLine } from './settings_line';

// Not needed before the settings are opened.
export const runSettings = lazy(async () => (await import('./RunSettings')).RunSettings);

export function Composer({ store }: { store: Store }) {
  const { chat, models } = store;
  const mode = chat.mode.value;
  const model = models.current.value;
  const ready = model?.state === 'loaded';
  const settings = useRef<HTMLDetailsElement>(null);
  const wereOpened = useSignal(false);
  const Settings = runSettings;
  const send = (): void => {
    if (settings.current) settings.current.open = false; // room for the answer
    void chat.send();
  };
  return (
    <form
      class="composer"
      aria-label="Prompt"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <ContinuesNote store={store} />
      <Input store={store} send={send} />
      <p class="problem" role="alert">
        {chat.error.value}
      </p>
      <div class="composer-foot">
        <Modes store={store} />
        <button
          type="submit"
          class="primary"
          disabled={chat.sending.value || !ready}
          title={ready ? 'Run the prompt (Ctrl+Enter)' : 'No model is loaded yet'}
        >
          {model?.embedding_only ? 'Embed' : 'Run'}
          <kbd aria-hidden="true">{mode === 'chat' ? '⏎' : 'Ctrl ⏎'}</kbd>
        </button>
      </div>
      <details
        ref={settings}
        id="run-settings"
        class="run-settings"
        onToggle={() => {
          wereOpened.value = true;
        }}
      >
        <summary>
          <span>Settings</span>
          <span class="summary">{settingsLine(store.settings.current.value)}</span>
        </summary>
        {wereOpened.value && <Settings store={store} />}
      </details>
      {mode !== 'tokens' && chat.error.value === null && (
        <LengthNote
          text={chat.draft.value[mode === 'chat' ? 'message' : 'text']}
          context={model?.context ?? 0}
          perToken={lettersPerToken(store.open.value?.data.tokens ?? [])}
        />
      )}
      <ContextNote tokens={store.settings.current.value.maxTokens} context={model?.context ?? 0} />
    </form>
  );
}

const LETTERS_PER_TOKEN = 4; // of English text
const LONG = 1000; // letters
const ENOUGH_TOKENS = 100; // to know the letters of a token

// Null: too few tokens.
export function lettersPerToken(tokens: readonly ({ readonly text: string } | undefined)[]) {
  if (tokens.length < ENOUGH_TOKENS) return null;
  const letters = tokens.reduce((sum, token) => sum + (token?.text.length ?? 0), 0);
  return letters > 0 ? letters / tokens.length : null;
}

// A pasted text may be longer than the context; how many tokens it has is known when it runs.
// `perToken`: letters of a token of the open session; null: not known.
function LengthNote(props: { text: string; context: number; perToken: number | null }) {
  const { text, context, perToken } = props;
  if (text.length < LONG) return null;
  const tokens = Number((text.length / (perToken ?? LETTERS_PER_TOKEN)).toPrecision(2));
  const isLong = context > 0 && tokens >= context;
  return (
    <p class={isLong ? 'model-note warn' : 'model-note'}>
      About {formatCount(tokens)} tokens, if one has{' '}
      {perToken === null
        ? `${LETTERS_PER_TOKEN} letters as in English text`
        : `${perToken.toPrecision(2)} letters as in the open session`}
      .{isLong && ` The context has room for ${formatCount(context)}.`}
    </p>
  );
}

function ContextNote({ tokens, context }: { tokens: number; context: number }) {
  if (context === 0 || tokens < context) return null;
  return (
    <p class="model-note">
      The context has room for {formatCount(context)} tokens, with the prompt: the answer ends when
      it is full.
    </p>
  );
}

// Shows that the message continues the conversation, even while another session is shown.
function ContinuesNote({ store }: { store: Store }) {
  const { chat } = store;
  const turns = chat.turns.value;
  if (chat.mode.value !== 'chat' || turns.length === 0) return null;
  const answered = messagesOf(turns).length / 2; // a turn without an answer is not sent again
  const here = turns.some((turn) => turn.session === store.open.value?.id);
  const last = turns.at(-1);
  return (
    <p class="continues">
      <span>
        {answered === 0
          ? 'No answer to continue after'
          : `Continues after ${plural(answered, 'turn')}`}
      </span>
      {!here && last && (
        <button
          type="button"
          class="link"
          onClick={() => {
            store.navigation.toSession(last.session);
          }}
        >
          Show them
        </button>
      )}
      <button
        type="button"
        class="link"
        onClick={() => {
          store.newConversation();
        }}
      >
        New conversation
      </button>
    </p>
  );
}

function Input({ store, send }: { store: Store; send: () => void }) {
  const { chat, models } = store;
  const mode = chat.mode.value;
  const draft = chat.draft.value;
  const model = models.current.value;
  const field = { chat: 'message', text: 'text', tokens: 'tokens' } as const;
  const name = field[mode];
  return (
    <>
      <textarea
        id="prompt"
        class={`prompt-text ${mode === 'tokens' ? 'mono' : ''}`}
        aria-label={mode === 'chat' ? 'Message' : mode === 'text' ? 'Prompt' : 'Token IDs'}
        rows={mode === 'chat' ? 2 : 4}
        placeholder={PLACEHOLDERS[mode]}
        spellcheck={mode !== 'tokens'}
        value={draft[name]}
        onInput={(event) => {
          chat.write({ [name]: event.currentTarget.value });
        }}
        onKeyDown={(event) => {
          // Enter sends a chat message; in text mode it inserts a line break.
          if (mode !== 'chat' || event.key !== 'Enter' || event.shiftKey || event.isComposing)
            return;
          if (event.ctrlKey || event.metaKey) return;
          event.preventDefault();
          send();
        }}
      />
      {mode === 'tokens' && model?.has_vocabulary === false && (
        <p class="model-note">{modelNotes(model)[0]}</p>
      )}
      {model?.embedding_only && <p class="model-note">{modelNotes(model)[0]}</p>}
    </>
  );
}

const PLACEHOLDERS: Readonly<Record<PromptMode, string>> = {
  chat: 'Write a message',
  text: 'Text for the model to continue',
  tokens: '1 15043 3186',
};

function Modes({ store }: { store: Store }) {
  const { chat, models } = store;
  const model = models.current.value;
  const loaded = model?.state === 'loaded' ? model : null;
  const noText = loaded?.has_vocabulary === false;
  const noChat = noText || loaded?.can_chat === false;
  return (
    <Segmented
      label="Prompt format"
      value={chat.mode.value}
      options={[
        {
          value: 'chat',
          text: 'Chat',
          disabled: noChat,
          hint: noText
            ? 'This model has no vocabulary'
            : noChat
              ? 'This model has no chat template that works'
              : loaded?.has_chat_template === false
                ? 'A conversation, written as ChatML: this model has no chat template'
                : 'A conversation; the model’s chat template is applied',
        },
        {
          value: 'text',
          text: 'Text',
          disabled: noText,
          hint: noText ? 'This model has no vocabulary' : 'Plain text, without a chat template',
        },
        { value: 'tokens', text: 'Tokens', hint: 'Token IDs of the model’s vocabulary' },
      ]}
      choose={(mode: PromptMode) => {
        chat.selectMode(mode);
      }}
    />
  );
}

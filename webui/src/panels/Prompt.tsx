// The prompt box: text, chat messages or token ids, with the settings of
// sampling and of the trace.
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { sentence } from '../net/api';
import type { Message, Model } from '../net/types';
import { promptMode, emptyDraft, requestOf, type Draft, type PromptMode } from '../state/request';
import type { Settings } from '../state/settings';
import type { Store } from '../state/store';
import { Panel } from '../ui/Panel';
import { Segmented } from '../ui/Segmented';
import { RunSettings } from './RunSettings';
import { currentModel } from './TopBar';

export function Prompt({ store }: { store: Store }) {
  const draft = useSignal<Draft>(emptyDraft);
  const chosen = useSignal<PromptMode | null>(null);
  const complaint = useSignal<string | null>(null);
  const reachable = useMemo(() => store.select(({ health }) => health !== null), [store]).value;
  const submit = useMemo(() => store.select((state) => state.submit), [store]).value;
  const model = useMemo(
    () =>
      store.select(({ models }) =>
        models.is === 'ready' ? currentModel(models.value) : undefined,
      ),
    [store],
  ).value;
  const loaded = model?.state === 'loaded' ? model : undefined;
  const ready = loaded !== undefined && reachable;
  const mode = promptMode(chosen.value, loaded);
  const change = (part: Partial<Draft>): void => {
    draft.value = { ...draft.value, ...part };
    complaint.value = null;
  };
  const choose = (next: PromptMode): void => {
    chosen.value = next;
    complaint.value = null;
  };
  const send = (): void => {
    if (!ready) {
      complaint.value = 'The server has no model ready yet.';
      return;
    }
    const request = requestOf({ ...draft.value, mode }, store.settings.value);
    complaint.value = request.ok ? null : request.error;
    if (request.ok) void store.generate(request.value);
  };
  const problem = complaint.value ?? (submit.is === 'failed' ? sentence(submit.error) : null);
  return (
    <Panel
      title="Prompt"
      class="prompt"
      tools={<Modes mode={mode} model={loaded} choose={choose} />}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            send();
          }
        }}
      >
        <PromptInput mode={mode} draft={draft.value} store={store} change={change} />
        <details class="run-settings">
          <summary>
            <span>Settings</span>
            <span class="summary">{settingsLine(store.settings.value)}</span>
          </summary>
          <RunSettings store={store} />
        </details>
        <p class="problem" role="alert">
          {problem}
        </p>
        <div class="prompt-foot">
          <button
            type="submit"
            class="primary"
            disabled={submit.is === 'loading' || !ready}
            title={
              ready ? 'Run the model on this prompt (Ctrl+Enter)' : 'The server has no model ready'
            }
          >
            Run
            <kbd aria-hidden="true">Ctrl ⏎</kbd>
          </button>
        </div>
      </form>
    </Panel>
  );
}

function settingsLine(s: Settings): string {
  const heat = s.temperature === 0 ? 'greedy' : `temp ${s.temperature}`;
  return `${s.maxTokens} tokens, ${heat}, ${s.level}, ${s.timing}`;
}

type Change = (part: Partial<Draft>) => void;

function Modes(props: {
  mode: PromptMode;
  model: Model | undefined;
  choose: (mode: PromptMode) => void;
}) {
  const noText = props.model?.has_vocabulary === false;
  const noChat = noText || props.model?.has_chat_template === false;
  return (
    <Segmented
      label="Form of the prompt"
      value={props.mode}
      options={[
        {
          value: 'text',
          text: 'Text',
          disabled: noText,
          hint: noText ? 'This model has no vocabulary' : 'Plain text',
        },
        {
          value: 'chat',
          text: 'Chat',
          disabled: noChat,
          hint: noChat
            ? 'This model has no chat template'
            : 'Messages in the model’s chat template',
        },
        { value: 'tokens', text: 'Tokens', hint: 'Token ids' },
      ]}
      choose={props.choose}
    />
  );
}

function PromptInput(props: { mode: PromptMode; draft: Draft; store: Store; change: Change }) {
  const { mode, draft, change } = props;
  switch (mode) {
    case 'text':
      return (
        <textarea
          class="prompt-text"
          aria-label="Prompt"
          placeholder="What shall the model continue?"
          rows={5}
          value={draft.text}
          onInput={(event) => {
            change({ text: event.currentTarget.value });
          }}
        />
      );
    case 'tokens':
      return (
        <textarea
          class="prompt-text mono"
          aria-label="Token ids"
          placeholder="Token ids, for instance: 1 15043 3186"
          rows={5}
          value={draft.tokens}
          onInput={(event) => {
            change({ tokens: event.currentTarget.value });
          }}
        />
      );
    case 'chat':
      return <Messages {...props} />;
  }
}

function Messages({ draft, store, change }: { draft: Draft; store: Store; change: Change }) {
  const { messages } = draft;
  const edit = (index: number, part: Partial<Message>): void => {
    change({ messages: messages.map((one, i) => (i === index ? { ...one, ...part } : one)) });
  };
  const answer = useMemo(
    () => store.select(({ open }) => (open?.run?.state === 'done' ? open.run.text : '')),
    [store],
  ).value;
  return (
    <div class="messages">
      {messages.map((message, index) => (
        <div class="message" key={index}>
          <select
            aria-label={`Role of message ${index + 1}`}
            value={message.role}
            onChange={(event) => {
              edit(index, { role: event.currentTarget.value as Message['role'] });
            }}
          >
            <option>system</option>
            <option>user</option>
            <option>assistant</option>
          </select>
          <textarea
            aria-label={`Message ${index + 1}`}
            placeholder={message.role === 'user' ? 'What do you want to say to the model?' : ''}
            rows={message.role === 'user' ? 3 : 2}
            value={message.content}
            onInput={(event) => {
              edit(index, { content: event.currentTarget.value });
            }}
          />
          <button
            type="button"
            class="quiet"
            aria-label={`Remove message ${index + 1}`}
            title="Remove this message"
            disabled={messages.length === 1}
            onClick={() => {
              change({ messages: messages.filter((_, i) => i !== index) });
            }}
          >
            ×
          </button>
        </div>
      ))}
      <div class="message-tools">
        <button
          type="button"
          class="link"
          onClick={() => {
            change({ messages: [...messages, { role: 'user', content: '' }] });
          }}
        >
          Add message
        </button>
        {answer !== '' && (
          <button
            type="button"
            class="link"
            title="Adds the answer and an empty message behind it"
            onClick={() => {
              const next: Message[] = [
                { role: 'assistant', content: answer },
                { role: 'user', content: '' },
              ];
              change({ messages: [...messages, ...next] });
            }}
          >
            Continue after the answer
          </button>
        )}
      </div>
    </div>
  );
}

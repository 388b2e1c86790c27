// The draft of the next request and the conversation before it. Each answer is one session. A turn
// sends the whole conversation; the server reuses the cached prefix. Stored per tab, so that a
// reload keeps it, and never in the URL.
import {
  computed,
  effect,
  signal,
  untracked,
  type ReadonlySignal,
  type Signal,
} from '@preact/signals';
import { isNotFound, errorText, type Api } from '../../net/api';
import type { GenerateRequest, Message, Model, Run, Session } from '../../net/types';
import { isActive } from '../session/open_session';
import {
  emptyDraft,
  promptMode,
  promptOf,
  requestOf,
  type Draft,
  type PromptMode,
} from './request';
import type { Settings } from './settings';

// One message and its answer.
export interface Turn {
  readonly user: string;
  readonly session: string;
  readonly run: Run | null; // final state; null: not finished
}

export interface RecordedConversation {
  readonly system: string; // empty: none
  readonly turns: readonly Turn[];
}

export interface ChatState {
  readonly draft: Draft;
  readonly mode: PromptMode | null; // null: not selected
  readonly turns: readonly Turn[];
}

const emptyChat: ChatState = { draft: emptyDraft, mode: null, turns: [] };
const KEY = 'tensor-trace.chat';
const POLL_MS = 1000;

export type DebugOptions = Pick<GenerateRequest, 'breakpoints' | 'stop_at_first_op' | 'hold_ms'>;

interface Parts {
  readonly api: Pick<Api, 'generate' | 'run'>;
  readonly model: ReadonlySignal<Model | null>;
  readonly hasSeveralModels: () => boolean; // several models: the request must name one
  readonly settings: ReadonlySignal<Settings>;
  readonly breakpoints: () => DebugOptions; // of the next run
  readonly open: (run: Run, request: GenerateRequest) => void;
  // The page's model state may be outdated, or a breakpoint is wrong.
  readonly rejected: (detail: string, request: GenerateRequest) => void;
  readonly storage: Pick<Storage, 'getItem' | 'setItem'> | null;
}

export class Chat {
  readonly mode: ReadonlySignal<PromptMode>;
  readonly draft: ReadonlySignal<Draft>;
  readonly turns: ReadonlySignal<readonly Turn[]>;
  readonly sending: ReadonlySignal<boolean>;
  readonly error: ReadonlySignal<string | null>;
  private readonly state: Signal<ChatState>;
  private readonly busy = signal(false);
  private readonly currentError = signal<string | null>(null);
  private readonly parts: Parts;

  constructor(parts: Parts) {
    this.parts = parts;
    this.state = signal(loadState(parts.storage));
    this.mode = computed(() => promptMode(this.state.value.mode, parts.model.value));
    this.draft = computed(() => this.state.value.draft);
    this.turns = computed(() => this.state.value.turns);
    this.sending = this.busy;
    this.error = this.currentError;
    let before = this.mode.peek();
    effect(() => {
      const mode = this.mode.value;
      untracked(() => {
        if (mode !== this.state.peek().mode) this.carryText(before, mode);
      });
      before = mode;
    });
    for (const turn of this.state.peek().turns) if (!turn.run) void this.pollRun(turn.session);
  }

  write(change: Partial<Draft>): void {
    // What was wrong with the text before no longer applies.
    this.currentError.value = null;
    this.update({ draft: { ...this.state.peek().draft, ...change } });
  }

  // The model, not the user, changed the mode, for example because it has been loaded: what was written
  // meanwhile stays in the form.
  private carryText(from: PromptMode, to: PromptMode): void {
    const { draft } = this.state.peek();
    if (from === 'text' && to === 'chat' && draft.message === '')
      this.write({ message: draft.text, text: '' });
    else if (from === 'chat' && to === 'text' && draft.text === '')
      this.write({ text: draft.message, message: '' });
  }

  selectMode(mode: PromptMode): void {
    this.update({ mode });
  }

  // Starts a new conversation; keeps the draft.
  clear(): void {
    this.update({ turns: [] });
  }

  // Continues the conversation that was cleared.
  resume(turns: readonly Turn[]): void {
    this.update({ turns });
    for (const turn of turns) if (!turn.run) void this.pollRun(turn.session);
  }

  // Continues a recorded conversation.
  continueFrom({ system, turns }: RecordedConversation): void {
    this.update({ turns, mode: 'chat', draft: { ...this.state.peek().draft, system } });
  }

  // Removes this turn and all later ones and puts its message into the draft.
  edit(index: number): void {
    const { turns, draft } = this.state.peek();
    const turn = turns[index];
    if (!turn) return;
    this.update({ turns: turns.slice(0, index), draft: { ...draft, message: turn.user } });
  }

  async send(): Promise<void> {
    await this.sendDraft(this.state.peek().draft);
  }

  // Sends another text in this mode. What the user has written stays.
  async sendText(mode: PromptMode, text: string): Promise<void> {
    this.selectMode(mode);
    const field = mode === 'chat' ? 'message' : mode;
    if (this.state.peek().draft[field] === '') this.write({ [field]: text });
    await this.sendDraft({ ...this.state.peek().draft, [field]: text });
  }

  private async sendDraft(draft: Draft): Promise<void> {
    if (this.busy.peek()) return;
    const model = this.parts.model.peek();
    if (model?.state !== 'loaded') {
      this.currentError.value = 'No model is loaded yet.';
      return;
    }
    const { turns } = this.state.peek();
    const mode = this.mode.peek();
    const prompt = promptOf(mode, draft, messagesOf(turns), model);
    const request = prompt.ok ? requestOf(prompt.value, this.parts.settings.peek()) : prompt;
    this.currentError.value = request.ok ? null : request.error;
    if (!request.ok) return;
    this.busy.value = true;
    const body = {
      ...request.value,
      ...this.parts.breakpoints(),
      ...(this.parts.hasSeveralModels() ? { model: model.id } : {}),
    };
    const answer = await this.parts.api.generate(body);
    this.busy.value = false;
    if (!answer.ok) {
      // A short message can be rejected as too long, because of what comes before it.
      const continues = mode === 'chat' && messagesOf(turns).length > 0;
      const isLong = answer.error.kind === 'rejected' && answer.error.code === 'too_long';
      this.currentError.value =
        errorText(answer.error) +
        (isLong && continues
          ? ' The conversation so far is part of the prompt: “New conversation” leaves it out.'
          : '');
      if (answer.error.kind === 'rejected') this.parts.rejected(answer.error.detail, body);
      return;
    }
    const run = { ...EMPTY_RUN, ...answer.value };
    if (mode === 'chat') {
      const turn = { user: draft.message, session: run.id, run: null };
      const written = this.state.peek().draft;
      const isSent = written.message === draft.message;
      this.update({
        turns: [...turns, turn],
        draft: isSent ? { ...written, message: '' } : written,
      });
      void this.pollRun(run.id);
    }
    this.parts.open(run, body);
  }

  // Stores the result of a finished run.
  finishTurn(run: Run): void {
    const { turns } = this.state.peek();
    if (!turns.some((turn) => turn.session === run.id && !turn.run)) return;
    this.update({
      turns: turns.map((turn) => (turn.session === run.id ? { ...turn, run } : turn)),
    });
  }

  // Polls the run, because another session may be open while it is generated.
  private async pollRun(session: string): Promise<void> {
    for (;;) {
      await new Promise((done) => setTimeout(done, POLL_MS));
      const turn = this.state.peek().turns.find((one) => one.session === session);
      if (!turn || turn.run) return;
      const answer = await this.parts.api.run(session);
      if (answer.ok && !isActive(answer.value.state)) this.finishTurn(answer.value);
      if (!answer.ok && isNotFound(answer.error)) {
        const error = 'The server no longer has this run.';
        this.finishTurn({ ...EMPTY_RUN, id: session, state: 'failed', error });
      }
    }
  }

  private update(change: Partial<ChatState>): void {
    this.state.value = { ...this.state.peek(), ...change };
    if (change.draft || change.mode) this.currentError.value = null;
    try {
      this.parts.storage?.setItem(KEY, JSON.stringify(this.state.peek()));
    } catch {
      // Storage is optional.
    }
  }
}

export const EMPTY_RUN: Run = {
  id: '',
  model: '',
  state: 'queued',
  position: 0,
  prompt_tokens: 0,
  prompt_done: 0,
  reused_tokens: 0,
  generated: 0,
  max_tokens: 0,
  text: '',
  stop_reason: null,
  error: null,
  stopped: null,
  stopped_ahead: null,
};

// The conversation so far. Messages without an answer are left out: chat templates expect
// alternating roles.
export function messagesOf(turns: readonly Turn[]): readonly Message[] {
  return turns.flatMap(({ user, run }): readonly Message[] =>
    run && run.text !== ''
      ? [
          { role: 'user', content: user },
          { role: 'assistant', content: run.text },
        ]
      : [],
  );
}

// The conversation of a recorded session: the messages of its request, read from its facts, and
// its answer. Null if the messages do not alternate between user and assistant.
export function conversationOf(session: Session, run: Run): RecordedConversation | null {
  const messages: { role: string; content: string }[] = [];
  for (const [key, content] of Object.entries(session.facts ?? {})) {
    const match = /^request\.messages\.(\d+)\.(\w+)$/.exec(key);
    if (match?.[1] !== undefined) messages[Number(match[1])] = { role: match[2] ?? '', content };
  }
  const dialogue = messages.filter((message) => message.role !== 'system');
  const inTurns = dialogue.every(({ role }, i) => role === (i % 2 === 0 ? 'user' : 'assistant'));
  if (dialogue.length === 0 || dialogue.length % 2 === 0 || !inTurns) return null;
  const system = messages.find((message) => message.role === 'system')?.content ?? '';
  const turns = dialogue.flatMap(({ role, content }, i): readonly Turn[] => {
    if (role !== 'user') return [];
    const reply = dialogue[i + 1];
    // The sessions of the earlier answers are not recorded.
    if (!reply) return [{ user: content, session: session.id, run }];
    const earlier = `${session.id}:${i}`;
    const ended: Run = { ...EMPTY_RUN, id: earlier, state: 'done', text: reply.content };
    return [{ user: content, session: earlier, run: ended }];
  });
  return { system, turns };
}

function loadState(storage: Parts['storage']): ChatState {
  try {
    const stored: unknown = JSON.parse(storage?.getItem(KEY) ?? 'null');
    if (typeof stored !== 'object' || stored === null) return emptyChat;
    const { draft, mode, turns } = stored as Partial<ChatState>;
    return {
      draft: { ...emptyDraft, ...draft },
      mode: mode ?? null,
      turns: Array.isArray(turns) ? turns : [],
    };
  } catch {
    return emptyChat;
  }
}

// What is about to be asked and the conversation before it. Each answer is a
// session of its own; a later turn sends the whole conversation again, of which
// the server keeps the beginning in its cache. Kept for this tab (so that a
// reload loses nothing), never in an address.
import { computed, signal, type ReadonlySignal, type Signal } from '@preact/signals';
import { isMissing, sentence, type Api } from '../net/api';
import type { Message, Model, Run, Session } from '../net/types';
import { isActive } from './open_session';
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
  readonly run: Run | null; // as it ended; null: not yet
}

export interface Said {
  readonly system: string; // empty: nothing
  readonly turns: readonly Turn[];
}

export interface Memory {
  readonly draft: Draft;
  readonly mode: PromptMode | null; // as chosen
  readonly turns: readonly Turn[];
}

const nothing: Memory = { draft: emptyDraft, mode: null, turns: [] };
const KEY = 'tensor-trace.chat';
const POLL_MS = 1000;

interface Parts {
  readonly api: Pick<Api, 'generate' | 'run'>;
  readonly model: ReadonlySignal<Model | null>;
  readonly several: () => boolean; // models: a request has to say which
  readonly settings: ReadonlySignal<Settings>;
  readonly open: (run: Run) => void;
  readonly refused: () => void; // the model may not be what this page takes it for
  readonly storage: Pick<Storage, 'getItem' | 'setItem'> | null;
}

export class Chat {
  readonly mode: ReadonlySignal<PromptMode>;
  readonly draft: ReadonlySignal<Draft>;
  readonly turns: ReadonlySignal<readonly Turn[]>;
  readonly sending: ReadonlySignal<boolean>;
  readonly complaint: ReadonlySignal<string | null>;
  private readonly memory: Signal<Memory>;
  private readonly busy = signal(false);
  private readonly wrong = signal<string | null>(null);
  private readonly parts: Parts;

  constructor(parts: Parts) {
    this.parts = parts;
    this.memory = signal(recalled(parts.storage));
    this.mode = computed(() => promptMode(this.memory.value.mode, parts.model.value));
    this.draft = computed(() => this.memory.value.draft);
    this.turns = computed(() => this.memory.value.turns);
    this.sending = this.busy;
    this.complaint = this.wrong;
    for (const turn of this.memory.peek().turns) if (!turn.run) void this.await(turn.session);
  }

  write(change: Partial<Draft>): void {
    this.keep({ draft: { ...this.memory.peek().draft, ...change } });
  }

  choose(mode: PromptMode): void {
    this.keep({ mode });
  }

  // A conversation begins anew; what stands in the form stays.
  clear(): void {
    this.keep({ turns: [] });
  }

  // Goes on after a recorded conversation.
  adopt({ system, turns }: Said): void {
    this.keep({ turns, mode: 'chat', draft: { ...this.memory.peek().draft, system } });
  }

  // Back to before this turn: its message stands in the form again.
  edit(index: number): void {
    const { turns, draft } = this.memory.peek();
    const turn = turns[index];
    if (!turn) return;
    this.keep({ turns: turns.slice(0, index), draft: { ...draft, message: turn.user } });
  }

  async send(): Promise<void> {
    if (this.busy.peek()) return;
    const model = this.parts.model.peek();
    if (model?.state !== 'loaded') {
      this.wrong.value = 'No model is loaded yet.';
      return;
    }
    const { draft, turns } = this.memory.peek();
    const mode = this.mode.peek();
    const prompt = promptOf(mode, draft, messagesOf(turns), model);
    const request = prompt.ok ? requestOf(prompt.value, this.parts.settings.peek()) : prompt;
    this.wrong.value = request.ok ? null : request.error;
    if (!request.ok) return;
    this.busy.value = true;
    const body = this.parts.several() ? { ...request.value, model: model.id } : request.value;
    const answer = await this.parts.api.generate(body);
    this.busy.value = false;
    if (!answer.ok) {
      this.wrong.value = sentence(answer.error);
      if (answer.error.kind === 'refused') this.parts.refused();
      return;
    }
    const run = { ...EMPTY_RUN, ...answer.value };
    if (mode === 'chat') {
      const turn = { user: draft.message, session: run.id, run: null };
      this.keep({ turns: [...turns, turn], draft: { ...draft, message: '' } });
      void this.await(run.id);
    }
    this.parts.open(run);
  }

  // A run has ended.
  settle(run: Run): void {
    const { turns } = this.memory.peek();
    if (!turns.some((turn) => turn.session === run.id && !turn.run)) return;
    this.keep({ turns: turns.map((turn) => (turn.session === run.id ? { ...turn, run } : turn)) });
  }

  // The person may look at another session while this answer is made.
  private async await(session: string): Promise<void> {
    for (;;) {
      await new Promise((done) => setTimeout(done, POLL_MS));
      const turn = this.memory.peek().turns.find((one) => one.session === session);
      if (!turn || turn.run) return;
      const answer = await this.parts.api.run(session);
      if (answer.ok && !isActive(answer.value.state)) this.settle(answer.value);
      if (!answer.ok && isMissing(answer.error)) {
        const error = 'The server does not know this answer any more.';
        this.settle({ ...EMPTY_RUN, id: session, state: 'failed', error });
      }
    }
  }

  private keep(change: Partial<Memory>): void {
    this.memory.value = { ...this.memory.peek(), ...change };
    if (change.draft || change.mode) this.wrong.value = null;
    try {
      this.parts.storage?.setItem(KEY, JSON.stringify(this.memory.peek()));
    } catch {
      // Nothing is lost but the comfort.
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
};

// The conversation so far. A message without an answer is not repeated: two in a
// row are nothing that a chat template knows.
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

// The conversation that a session recorded: the messages of its request, as its
// facts have them, and its answer. Null for what was no conversation of turns.
export function saidIn(session: Session, run: Run): Said | null {
  const said: { role: string; content: string }[] = [];
  for (const [key, content] of Object.entries(session.facts ?? {})) {
    const match = /^request\.messages\.(\d+)\.(\w+)$/.exec(key);
    if (match?.[1] !== undefined) said[Number(match[1])] = { role: match[2] ?? '', content };
  }
  const spoken = said.filter((message) => message.role !== 'system');
  const inTurns = spoken.every(({ role }, i) => role === (i % 2 === 0 ? 'user' : 'assistant'));
  if (spoken.length === 0 || spoken.length % 2 === 0 || !inTurns) return null;
  const system = said.find((message) => message.role === 'system')?.content ?? '';
  const turns = spoken.flatMap(({ role, content }, i): readonly Turn[] => {
    if (role !== 'user') return [];
    const reply = spoken[i + 1];
    // Which sessions the earlier answers are is not recorded.
    if (!reply) return [{ user: content, session: session.id, run }];
    const earlier = `${session.id}:${i}`;
    const ended: Run = { ...EMPTY_RUN, id: earlier, state: 'done', text: reply.content };
    return [{ user: content, session: earlier, run: ended }];
  });
  return { system, turns };
}

function recalled(storage: Parts['storage']): Memory {
  try {
    const stored: unknown = JSON.parse(storage?.getItem(KEY) ?? 'null');
    if (typeof stored !== 'object' || stored === null) return nothing;
    const { draft, mode, turns } = stored as Partial<Memory>;
    return {
      draft: { ...emptyDraft, ...draft },
      mode: mode ?? null,
      turns: Array.isArray(turns) ? turns : [],
    };
  } catch {
    return nothing;
  }
}

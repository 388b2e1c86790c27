// The session that a file made by `tt export -o s.html` holds: the answers to the questions of
// questions.ts, which a server computed. They are packed in script elements that no browser runs, and
// are unpacked when they are asked for. Nothing is ever requested from outside of the file.
import { NOT_HELD_STATUS, type Ask, type Send } from '../net/call';
import type { Answers } from './answers';
import { derivedFrom } from './derived';

export interface HeldSession {
  readonly id: string;
  readonly send: Send;
}

type Held = readonly [element: number, status: number, type: string];

interface Index {
  readonly session: string;
  readonly same: readonly number[]; // by step: the first step of its template
  readonly answers: Readonly<Record<string, Held>>; // by keyOf()
}

export const keyOf = ({ method, target, body }: Ask): string =>
  `${method} ${target}${body === null ? '' : `\n${body}`}`;

// Not 404: the session has what is asked for.
const NOT_HELD = {
  title: 'Not in this file',
  detail:
    'This file holds the session and the answers to the usual questions, but not to this one: open the session with tt-server to see it.',
};

// `list`: the element with the list of the answers, which only such a file has.
export async function heldSession(list: HTMLElement): Promise<HeldSession> {
  const document = list.ownerDocument;
  const index = (await new Response(unpacked(list)).json()) as Index;
  const answers: Answers = {
    keys: Object.keys(index.answers),
    same: index.same,
    get: (key) => {
      const held = index.answers[key];
      const element = held && document.getElementById(`a${held[0]}`);
      if (!element) return null;
      const [, status, type] = held;
      return Promise.resolve(
        new Response(unpacked(element), { status, headers: { 'content-type': type } }),
      );
    },
  };
  const derived = derivedFrom(answers);
  return {
    id: index.session,
    send: async (ask) =>
      (await (answers.get(keyOf(ask)) ?? derived(ask))) ??
      Response.json(NOT_HELD, { status: NOT_HELD_STATUS }),
  };
}

function unpacked(element: HTMLElement): ReadableStream<Uint8Array> {
  const text = atob(element.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
}

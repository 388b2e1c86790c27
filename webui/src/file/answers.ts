// The answers that a file holds, as held_session.ts finds them and derived.ts uses them.

export interface Answers {
  readonly keys: readonly string[]; // by keyOf()
  readonly same: readonly number[]; // by step: the first step of its template
  // Null: the file does not hold it.
  readonly get: (key: string) => Promise<Response> | null;
}

// An access as REST lists it; null fields are there.
export type HeldAccess = Readonly<Record<string, string | number | boolean | null>>;

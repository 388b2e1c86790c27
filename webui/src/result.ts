// Expected failures are values: what a call to the server gives back, and what
// a view shows of something that arrives later.

export type Result<T, E> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: E };

export const ok = <T>(value: T): Result<T, never> => ({ ok: true, value });
export const err = <E>(error: E): Result<never, E> => ({ ok: false, error });

export type Loadable<T, E> =
  | { readonly is: 'idle' }
  | { readonly is: 'loading' }
  | { readonly is: 'ready'; readonly value: T }
  | { readonly is: 'failed'; readonly error: E };

export const idle = { is: 'idle' } as const;
export const loading = { is: 'loading' } as const;

export function settled<T, E>(result: Result<T, E>): Loadable<T, E> {
  return result.ok ? { is: 'ready', value: result.value } : { is: 'failed', error: result.error };
}

// Expected failures are values. Result: the outcome of a call to the server. Loadable: the state
// of a value that is loaded asynchronously.

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

export function toLoadable<T, E>(result: Result<T, E>): Loadable<T, E> {
  return result.ok ? { is: 'ready', value: result.value } : { is: 'failed', error: result.error };
}

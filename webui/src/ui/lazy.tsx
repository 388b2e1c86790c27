// A component whose code is loaded when it is first shown, or by preload().
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { Loading } from './States';

type State<P> =
  | { readonly is: 'loading' }
  | { readonly is: 'failed' }
  | { readonly is: 'ready'; readonly body: ComponentType<P> };

export type LazyComponent<P> = ComponentType<P> & { readonly preload: () => void };

export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): LazyComponent<P> {
  const state = signal<State<P>>({ is: 'loading' });
  let isRequested = false;
  const read = (): void => {
    if (isRequested) return;
    isRequested = true;
    state.value = { is: 'loading' };
    load().then(
      (body) => {
        state.value = { is: 'ready', body };
      },
      () => {
        isRequested = false;
        state.value = { is: 'failed' };
      },
    );
  };
  return Object.assign(Lazy, { preload: read });

  function Lazy(props: P) {
    useEffect(read, []);
    const now = state.value;
    if (now.is === 'ready') return <now.body {...props} />;
    if (now.is === 'failed') return <NotLoaded retry={read} />;
    return <Loading />;
  }
}

// Code whose file is gone cannot be loaded again: another version of the server has other files.
function NotLoaded({ retry }: { retry: () => void }) {
  return (
    <div class="empty empty-error" role="alert">
      <b>This panel could not be loaded.</b>
      <span>If the server was updated, reload the page.</span>
      <button
        type="button"
        class="link"
        onClick={() => {
          location.reload();
        }}
      >
        Reload the page
      </button>
      <button type="button" class="link" onClick={retry}>
        Try again
      </button>
    </div>
  );
}

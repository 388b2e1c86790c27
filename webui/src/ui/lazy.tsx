// A component whose code is loaded when it is first shown, or by preload().
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { Failed, Loading } from './States';

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
    if (now.is === 'failed') return <Failed what="This panel could not be loaded." retry={read} />;
    return <Loading />;
  }
}

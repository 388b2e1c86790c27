// A component whose code is loaded when it is first shown.
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { Failed, Loading } from './States';

type State<P> =
  | { readonly is: 'loading' }
  | { readonly is: 'failed' }
  | { readonly is: 'ready'; readonly body: ComponentType<P> };

export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  const state = signal<State<P>>({ is: 'loading' });
  const read = (): void => {
    if (state.peek().is === 'ready') return;
    state.value = { is: 'loading' };
    load().then(
      (body) => {
        state.value = { is: 'ready', body };
      },
      () => {
        state.value = { is: 'failed' };
      },
    );
  };
  return function Lazy(props: P) {
    useEffect(read, []);
    const now = state.value;
    if (now.is === 'ready') return <now.body {...props} />;
    if (now.is === 'failed') return <Failed what="This panel could not be loaded." retry={read} />;
    return <Loading />;
  };
}

// Commands of the debugger. Their keys are those of Chrome DevTools where it has them.
import type { Until } from '../state/request/debug';
import { outputOfSelection } from '../state/view/follow_selection';
import type { Store } from '../state/store';
import type { Command } from './command';

export function debugCommands(store: Store): readonly Command[] {
  const { debug } = store;
  const group = 'Debugger';
  const output = (): string | null => {
    const session = store.open.peek();
    return session && outputOfSelection(session, store.navigation.view.peek().selection);
  };
  const isStopped = (): boolean => Boolean(debug.state.peek()?.stop);
  const step = (until: Until, title: string, key: string): Command => ({
    id: `debug-${until}`,
    title,
    group,
    keys: [key],
    typing: true,
    enabled: isStopped,
    run: () => {
      debug.goOn(until);
    },
  });
  return [
    {
      id: 'breakpoint',
      title: 'Set or remove a breakpoint at the selected op',
      words: 'break stop debugger',
      group,
      keys: ['B'],
      enabled: () => output() !== null,
      run: (repeated) => {
        const at = output();
        if (at !== null && !repeated) debug.toggleAt(at);
      },
    },
    {
      id: 'debug-continue',
      title: 'Continue the stopped run, or pause it',
      group,
      keys: ['F8'],
      typing: true,
      enabled: () => debug.stop.peek() !== null,
      run: (repeated) => {
        if (repeated) return;
        if (isStopped()) debug.goOn('breakpoint');
        else void debug.pause();
      },
    },
    step('op', 'Step to the next op', 'F10'),
    step('layer', 'Step to the next layer', 'F9'),
    step('step', 'Step to the next token', 'Shift+F9'),
  ];
}

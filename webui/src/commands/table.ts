// All commands: those of the shell and those of the panels.
import { DOCS_URL, fileUrl } from '../net/api';
import type { Panel } from '../panels/panel';
import { LAYOUT_INFO, LAYOUT_NAMES } from '../state/view/layout';
import type { ThemeChoice } from '../state/request/settings';
import type { Store } from '../state/store';
import { serverOptionsText } from '../state/request/server_options';
import { afterEscape, type PhaseFilter } from '../state/view/view';
import { titleOf } from '../state/session/session_list';
import { copyText } from '../ui/clipboard';
import type { Command } from './command';
import { questionCommands } from './questions';
import { debugCommands } from './debug';
import { exportCommands, viewCommands } from './views';

export function commandsOf(store: Store, panels: readonly Panel[]): readonly Command[] {
  return [
    ...questionCommands(store),
    ...windowCommands(store),
    ...panelCommands(store, panels),
    ...viewCommands(store),
    ...moveCommands(store),
    ...playCommands(store),
    ...zoomCommands(store),
    ...(store.hasServer ? serverCommands(store) : []),
    ...panels.flatMap((panel) => panel.commands?.(store) ?? []),
    ...pageCommands(store),
  ];
}

// Of a single panel in the frame of another page.
export const embeddedCommands = (store: Store): readonly Command[] => [
  backCommand(store),
  ...moveCommands(store),
  ...playCommands(store),
  ...zoomCommands(store),
];

const serverCommands = (store: Store): readonly Command[] => [
  ...tourCommands(store),
  ...runCommands(store),
  ...debugCommands(store),
  ...sessionCommands(store),
  ...exportCommands(store),
  {
    id: 'api',
    title: 'Open the REST API documentation',
    group: 'Page',
    run: () => {
      open(DOCS_URL, '_blank', 'noopener');
    },
  },
];

// The tour runs a prompt and opens sessions.
const tourCommands = (store: Store): readonly Command[] => [
  {
    id: 'tour',
    title: 'Guided tour',
    words: 'learn explain introduction beginner tutorial resume',
    group: 'General',
    run: () => {
      store.settings.set({ tour: true });
    },
  },
];

function windowCommands(store: Store): readonly Command[] {
  const { shell, navigation } = store;
  const group = 'General';
  return [
    {
      id: 'palette',
      title: 'Search and commands',
      group,
      keys: ['Ctrl+K', 'Ctrl+Shift+P'],
      typing: true,
      hidden: true,
      run: () => {
        shell.show('palette');
      },
    },
    {
      id: 'help',
      title: 'Keyboard shortcuts and glossary',
      group,
      keys: ['?'],
      run: () => {
        shell.show('help');
      },
    },
    {
      id: 'full',
      title: 'Toggle full screen of the panel',
      group,
      keys: ['F'],
      run: () => {
        const { full } = navigation.view.peek();
        navigation.change({ full: full === null ? (shell.active.peek() ?? 'map') : null });
      },
    },
    backCommand(store),
    {
      id: 'undo',
      title: 'Undo: back to the view before',
      words: 'previous view history restore',
      group,
      enabled: () => history.length > 1,
      run: () => {
        history.back();
      },
    },
    {
      id: 'link',
      title: 'Copy a link to this view',
      group,
      run: () => {
        copy(store, addressOf(navigation.link()), 'Link');
      },
    },
    {
      id: 'embed',
      title: 'Copy HTML that shows the panel in another page',
      words: 'embed iframe frame wiki notebook',
      group,
      enabled: () => store.hasServer,
      run: () => {
        const link = addressOf(
          navigation.link({ embed: shell.active.peek() ?? 'map', full: null }),
        );
        const source = link.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
        copy(store, `<iframe src="${source}" width="900" height="500"></iframe>`, 'HTML');
      },
    },
  ];
}

const addressOf = (link: string): string => new URL(link, location.href).href;

function copy({ toasts }: Store, text: string, what: string): void {
  void copyText(text).then((copied) => {
    if (copied) toasts.done(`${what} copied.`);
    else toasts.error('The browser denied access to the clipboard.');
  });
}

function backCommand({ navigation }: Store): Command {
  return {
    id: 'back',
    title: 'Exit full screen, then clear the range, then the selection',
    group: 'General',
    keys: ['Escape'],
    enabled: () => afterEscape(navigation.view.peek()) !== null,
    run: () => {
      const back = afterEscape(navigation.view.peek());
      if (back) navigation.go(back);
    },
  };
}

function panelCommands(store: Store, panels: readonly Panel[]): readonly Command[] {
  return panels.map(({ id, title, words }, i) => ({
    id: `show-${id}`,
    title: `Show ${title}`,
    ...(words === undefined ? {} : { words }),
    group: 'Panels',
    ...(i < 9 ? { keys: [String(i + 1)] } : {}),
    run: () => {
      store.reveal(id);
      document.getElementById(`tab-${id}`)?.focus();
    },
  }));
}

function moveCommands(store: Store): readonly Command[] {
  const { navigation } = store;
  const group = 'Steps and layers';
  const enabled = (): boolean => store.open.peek() !== null;
  const step = (id: string, title: string, key: string, by: 1 | -1): Command => ({
    id,
    title,
    group,
    keys: [key],
    enabled,
    run: (repeated) => {
      store.moveStep(by, repeated);
    },
  });
  const layer = (id: string, title: string, key: string, by: 1 | -1): Command => ({
    id,
    title,
    group,
    keys: [key],
    enabled,
    run: (repeated) => {
      store.moveLayer(by, repeated);
    },
  });
  const phase = (value: PhaseFilter, title: string): Command => ({
    id: `phase-${value}`,
    title,
    group,
    enabled,
    run: () => {
      store.setPhase(value);
    },
  });
  return [
    step('step-before', 'Previous step', '[', -1),
    step('step-after', 'Next step', ']', 1),
    layer('layer-before', 'Previous layer', '{', -1),
    layer('layer-after', 'Next layer', '}', 1),
    {
      id: 'follow',
      title: 'Follow the newest step',
      group,
      keys: ['L'],
      enabled: () => store.open.peek()?.following.peek() === false,
      run: () => {
        navigation.toStep(null);
      },
    },
    phase('all', 'Show all steps'),
    phase('prompt', 'Show only the prompt'),
    phase('generate', 'Show only generated tokens'),
  ];
}

function playCommands(store: Store): readonly Command[] {
  const { playback } = store;
  const group = 'Playback';
  const enabled = (): boolean => (store.open.peek()?.data.steps.length ?? 0) > 0;
  const op = (id: string, title: string, key: string, by: 1 | -1): Command => ({
    id,
    title,
    group,
    keys: [key],
    enabled,
    run: (repeated) => {
      playback.moveOp(by, repeated ? 'coalesce' : 'push');
    },
  });
  return [
    {
      id: 'play',
      title: 'Play or pause',
      group,
      keys: [' '],
      enabled,
      run: (repeated) => {
        if (!repeated) playback.toggle();
      },
    },
    op('op-before', 'Previous op', ',', -1),
    op('op-after', 'Next op', '.', 1),
    {
      id: 'loop',
      title: 'Toggle the loop of playback',
      group,
      enabled,
      run: () => {
        const { loop } = store.navigation.view.peek();
        store.navigation.change({ loop: !loop }, 'replace');
      },
    },
  ];
}

function zoomCommands(store: Store): readonly Command[] {
  const { shell } = store;
  const enabled = (): boolean => shell.viewport() !== null;
  const group = 'Zoom and pan';
  const zoom = (id: string, title: string, keys: readonly string[], factor: number): Command => ({
    id,
    title,
    group,
    keys,
    enabled,
    run: () => shell.viewport()?.zoom(factor),
  });
  const pan = (id: string, title: string, key: string, share: number): Command => ({
    id,
    title,
    group,
    keys: [key],
    enabled,
    run: () => shell.viewport()?.pan(share),
  });
  return [
    zoom('zoom-in', 'Zoom in', ['+', 'W', '='], 0.7),
    zoom('zoom-out', 'Zoom out', ['-', 'S'], 1 / 0.7),
    pan('pan-left', 'Pan left', 'A', -0.2),
    pan('pan-right', 'Pan right', 'D', 0.2),
    {
      id: 'zoom-selection',
      title: 'Zoom to the range or the selection',
      group,
      keys: ['Z'],
      enabled: () => shell.viewport()?.zoomToSelection !== undefined,
      run: () => shell.viewport()?.zoomToSelection?.(),
    },
    {
      id: 'fit',
      title: 'Show all',
      group,
      keys: ['0'],
      enabled,
      run: () => shell.viewport()?.fit(),
    },
  ];
}

function runCommands(store: Store): readonly Command[] {
  const { chat, models } = store;
  const group = 'Run';
  const list = models.list.peek();
  const all = list.is === 'ready' ? list.value.models : [];
  return [
    {
      id: 'send',
      title: 'Run the prompt',
      group,
      keys: ['Ctrl+Enter'],
      typing: true,
      run: () => {
        void chat.send();
      },
    },
    {
      id: 'server-options',
      title: 'Threads, flash attention, context size: options of the server',
      text: `Set when it starts, as tt-server -t 4: ${serverOptionsText(models.current.peek())}`,
      words: '-t -fa -c threads settings kv cache type',
      group,
      run: () => {
        store.reveal('chat');
        const settings = document.getElementById('run-settings');
        if (settings instanceof HTMLDetailsElement) settings.open = true;
        store.shell.seeksServerOptions.value = true;
      },
    },
    {
      id: 'stop',
      title: 'Stop the run',
      group,
      keys: ['X'],
      enabled: () => store.open.peek()?.active.peek() === true,
      run: (repeated) => {
        if (!repeated) store.stopByKey();
      },
    },
    {
      id: 'write',
      title: 'Write a prompt',
      group,
      keys: ['C'],
      run: () => {
        store.reveal('chat');
        document.getElementById('prompt')?.focus();
      },
    },
    {
      id: 'new-chat',
      title: 'New conversation',
      group,
      enabled: () => chat.turns.peek().length > 0,
      run: () => {
        store.newConversation();
      },
    },
    ...all.map((model): Command => ({
      id: `load-${model.id}`,
      title: `Load ${model.name}`,
      group: 'Models',
      enabled: () => model.state === 'available' || model.state === 'failed',
      run: () => {
        void models.load(model);
      },
    })),
    ...all.map((model): Command => ({
      id: `unload-${model.id}`,
      title: `Unload ${model.name}`,
      group: 'Models',
      enabled: () => model.state === 'loaded' || model.state === 'loading',
      run: () => {
        void models.unload(model);
      },
    })),
  ];
}

function sessionCommands(store: Store): readonly Command[] {
  const group = 'Sessions';
  const current = () => {
    const info = store.open.peek()?.info.peek();
    return info?.is === 'ready' ? info.value : null;
  };
  const page = store.sessions.page.peek();
  const listed = page.is === 'ready' ? page.value.sessions : [];
  return [
    {
      id: 'close',
      title: 'Close the session',
      group,
      enabled: () => store.open.peek() !== null,
      run: () => {
        store.navigation.toSession(null);
      },
    },
    {
      id: 'download',
      title: 'Download the session',
      group,
      enabled: () => current() !== null,
      run: () => {
        const session = current();
        if (!session) return;
        const link = document.createElement('a');
        link.href = fileUrl(session.id);
        link.download = `${session.id}.ttrace`;
        link.click();
      },
    },
    {
      id: 'delete',
      title: 'Delete the session',
      group,
      enabled: () => current() !== null && store.open.peek()?.active.peek() === false,
      run: () => {
        const session = current();
        if (session) void store.removeSession(session);
      },
    },
    {
      id: 'upload',
      title: 'Add .ttrace files…',
      group,
      run: () => {
        document.getElementById('upload')?.click();
      },
    },
    ...listed.map((session): Command => ({
      id: `open-${session.id}`,
      title: `Open “${titleOf(session)}”`,
      group,
      enabled: () => store.open.peek()?.id !== session.id,
      run: () => {
        store.navigation.toSession(session.id);
      },
    })),
  ];
}

function pageCommands(store: Store): readonly Command[] {
  const { settings } = store;
  const group = 'Page';
  const theme = (value: ThemeChoice, title: string): Command => ({
    id: `theme-${value}`,
    title,
    group,
    words: `${value} mode colours appearance`,
    enabled: () => settings.current.peek().theme !== value,
    run: () => {
      settings.set({ theme: value });
    },
  });
  return [
    theme('dark', 'Dark theme'),
    theme('light', 'Light theme'),
    theme('contrast', 'High contrast theme'),
    theme('auto', 'System theme'),
    ...LAYOUT_NAMES.map((name): Command => ({
      id: `layout-${name}`,
      title: `Layout ${name}`,
      group,
      words: LAYOUT_INFO[name].shows,
      keys: [LAYOUT_INFO[name].key],
      run: () => {
        store.applyLayout(name);
      },
    })),
    {
      id: 'letter-keys',
      title: 'Toggle single-key shortcuts',
      group,
      run: () => {
        const letterKeys = !settings.current.peek().letterKeys;
        settings.set({ letterKeys });
        store.toasts.done(`Single-key shortcuts are ${letterKeys ? 'enabled' : 'disabled'}.`);
      },
    },
  ];
}

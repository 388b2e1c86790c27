import { effect, signal } from '@preact/signals';
import { render } from 'preact';
import { App } from './app';
import './css/base.css';
import './css/controls.css';
import './css/shell.css';
import './css/panels.css';
import './css/chat.css';
import './css/sessions.css';
import './css/map.css';
import './css/strip.css';
import './css/playback.css';
import './css/debug.css';
import './css/graph.css';
import './css/budget.css';
import './css/table.css';
import './css/inspector.css';
import './css/overlays.css';
import './css/forced.css';
import { createApi } from './net/api';
import { retryWhileBusy } from './net/busy';
import { sendToServer } from './net/call';
import { Live } from './net/live';
import { PANELS, preloadPanels } from './panels/all_panels';
import { runSettings } from './panels/chat/Composer';
import { debugControls } from './shell/DebugBar';
import { Store } from './state/store';
import { storage } from './storage';
import { applyTheme, systemTheme } from './theme';
import { download } from './ui/download';

const list = document.getElementById('held');
const held = list && (await (await import('./file/held_session')).heldSession(list));
const panels = PANELS.filter(({ server }) => !held || server !== true);
const waiting = signal(0);
const store = new Store({
  api: createApi(held?.send ?? sendToServer, retryWhileBusy(waiting)),
  held: held?.id ?? null,
  waiting,
  browser: window,
  panels: new Set(panels.map(({ id }) => id)),
  local: storage('localStorage'),
  tab: storage('sessionStorage'),
  systemTheme: systemTheme(),
  offer: download,
});
applyTheme(store.theme);
effect(() => {
  const info = store.open.value?.info.value;
  const title = info?.is === 'ready' ? info.value.title : '';
  document.title = title ? `${title} – tensor-trace` : 'tensor-trace';
});

const liveUrl = new URL('api/v1/live', document.baseURI);
liveUrl.protocol = liveUrl.protocol === 'https:' ? 'wss:' : 'ws:';
liveUrl.hash = '';
// Many small messages would wake the page, and slow the model, more often.
liveUrl.search = '?batch=true&list=true';
store.start(held ? null : new Live(liveUrl.href, store));

const root = document.getElementById('app');
if (root) render(<App store={store} panels={panels} />, root);

// The panels of a run are loaded when the user first does something: before a question is written,
// they are there. A session that is opened needs them, too: they are loaded beside its steps.
effect(() => {
  if (store.open.value) preloadPanels();
});
const first = new AbortController();
for (const type of ['pointermove', 'pointerdown', 'keydown']) {
  const options = { capture: true, passive: true, signal: first.signal };
  addEventListener(
    type,
    () => {
      first.abort();
      preloadPanels();
      for (const { preload } of [runSettings, debugControls]) preload();
    },
    options,
  );
}

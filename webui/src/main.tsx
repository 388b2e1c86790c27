import { render } from 'preact';
import { App } from './app';
import './theme.css';
import './layout.css';
import { api } from './net/api';
import { Live } from './net/live';
import { Store } from './state/store';
import { applyTheme } from './theme';

const store = new Store(api);
const theme = applyTheme(store.settings);
const liveUrl = new URL('api/v1/live', document.baseURI);
liveUrl.protocol = liveUrl.protocol === 'https:' ? 'wss:' : 'ws:';
liveUrl.hash = '';
store.start(new Live(liveUrl.href, store));

const root = document.getElementById('app');
if (root) render(<App store={store} theme={theme} />, root);

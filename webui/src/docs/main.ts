// The API documentation page, /api/docs: Swagger UI for this server's /api/openapi.json. It makes
// no requests to other servers.
import { effect } from '@preact/signals';
import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import 'swagger-ui-dist/swagger-ui.css';
import './docs.css';
import { SettingsStore } from '../state/request/settings';
import { storage } from '../storage';
import { applyTheme, systemTheme, themeOf } from '../theme';

const theme = themeOf(new SettingsStore(storage('localStorage')).current, systemTheme());
applyTheme(theme);
effect(() => {
  document.documentElement.classList.toggle('dark-mode', theme.value !== 'light');
});

SwaggerUI({
  url: new URL('openapi.json', document.baseURI).href,
  dom_id: '#docs',
  // Do not send the document to an online validator.
  validatorUrl: 'none',
  // A link must not make this page load another document.
  queryConfigEnabled: false,
  deepLinking: true,
  displayOperationId: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  docExpansion: 'list',
  filter: true,
  tryItOutEnabled: true,
  // Hide the server selection: there is only one.
  plugins: [() => ({ wrapComponents: { ServersContainer: () => () => null } })],
});

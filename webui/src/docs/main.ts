// The contract as a page, /api/docs: Swagger UI on this server's own
// /api/openapi.json. Nothing comes from, or goes to, anywhere else.
import { effect } from '@preact/signals';
import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import 'swagger-ui-dist/swagger-ui.css';
import './docs.css';
import { SettingsStore } from '../state/settings';
import { storage } from '../storage';
import { applyTheme, systemTheme, themeOf } from '../theme';

const theme = themeOf(new SettingsStore(storage('localStorage')).chosen, systemTheme());
applyTheme(theme);
effect(() => {
  document.documentElement.classList.toggle('dark-mode', theme.value === 'dark');
});

SwaggerUI({
  url: new URL('openapi.json', document.baseURI).href,
  dom_id: '#docs',
  // Else the document would be sent to a service that judges it.
  validatorUrl: 'none',
  // A link from elsewhere must not make this page show another document.
  queryConfigEnabled: false,
  deepLinking: true,
  displayOperationId: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  docExpansion: 'list',
  filter: true,
  tryItOutEnabled: true,
  // There is one server to choose from.
  plugins: [() => ({ wrapComponents: { ServersContainer: () => () => null } })],
});

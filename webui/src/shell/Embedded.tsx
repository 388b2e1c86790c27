// One panel without the shell, in a frame of another page (docs/operation.md). It shows the view of its
// link, and changes nothing on the server.
import { useEffect } from 'preact/hooks';
import type { Panel } from '../panels/panel';
import { titleOf } from '../state/session/session_list';
import type { Store } from '../state/store';
import { withTab } from '../state/view/layout';
import { Empty } from '../ui/States';
import { PanelBody } from './Dock';

// Every change of the view changes the link.
function WholePage({ store, panel }: { store: Store; panel: Panel }) {
  const { tabs } = store.navigation.view.value;
  const whole = { embed: null, tabs: withTab(store.layout.value, tabs, panel.id) };
  return (
    <a href={store.navigation.link(whole)} target="_blank" rel="noopener">
      Open in tensor-trace
    </a>
  );
}

export function Embedded({ store, panel }: { store: Store; panel: Panel }) {
  const session = store.open.value;
  const info = session?.info.value;
  useEffect(() => {
    store.shell.activate(panel.id);
  }, [store, panel]);
  return (
    <main class="embedded">
      <header class="embedded-head">
        <h1>
          {info?.is === 'ready' && <b>{titleOf(info.value)}</b>} <span>{panel.title}</span>
        </h1>
        <WholePage store={store} panel={panel} />
      </header>
      <section class="panel" aria-label={panel.title} data-panel={panel.id}>
        {panel.acts ? (
          <Empty>{panel.title} changes the server, so it is not shown in other pages.</Empty>
        ) : session || (panel.server && panel.needs === 'nothing') ? (
          <PanelBody store={store} panel={panel} />
        ) : (
          <Empty>The link of this frame names no session: it needs session=ID.</Empty>
        )}
      </section>
    </main>
  );
}

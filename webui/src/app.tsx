// The shell: what stands where.
import type { ReadonlySignal } from '@preact/signals';
import { Answer } from './panels/Answer';
import { HeatPanel } from './panels/HeatPanel';
import { OpPanel } from './panels/OpPanel';
import { Prompt } from './panels/Prompt';
import { RunStrip } from './panels/RunStrip';
import { Sessions } from './panels/Sessions';
import { StatusLine } from './panels/StatusLine';
import { TopBar } from './panels/TopBar';
import type { Store } from './state/store';
import type { Theme } from './theme';
import { Splitter } from './ui/Splitter';

export function App({ store, theme }: { store: Store; theme: ReadonlySignal<Theme> }) {
  const share = store.settings.value.heatShare;
  return (
    <>
      <TopBar store={store} theme={theme} />
      <main class="page">
        <div class="side">
          <Prompt store={store} />
          <RunStrip store={store} />
          <Answer store={store} />
          <Sessions store={store} />
        </div>
        <div
          class="views"
          style={{ gridTemplateRows: `minmax(0, ${share}fr) auto minmax(0, ${1 - share}fr)` }}
        >
          <HeatPanel store={store} theme={theme} />
          <Splitter
            label="Height of heat map and op table"
            share={share}
            move={(heatShare) => {
              store.set({ heatShare });
            }}
          />
          <OpPanel store={store} />
        </div>
      </main>
      <StatusLine store={store} />
    </>
  );
}

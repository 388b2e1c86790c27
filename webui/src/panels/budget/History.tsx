// Speed and disk reads while the model generates, as running charts, and their means by setting.
import { formatBytes, formatNs, formatSpeed } from '../../format';
import type { MemoryBudget } from '../../state/request/memory_budget';
import type { SpeedHistory } from '../../state/session/speed_history';
import { CHART_WIDTH, speedText, Tick } from './chart';
import { beginnings, lineOf, polyline, runningTime, type RunningTime } from './curve';

export function History({ budget }: { budget: MemoryBudget }) {
  void budget.version.value;
  const { history } = budget;
  const settings = budget.settings.value;
  const time = runningTime(history.atMs, history.runs);
  if (history.length === 0) {
    return (
      <p class="dim">
        Speed and disk reads are measured while this page is open and the model generates; a
        recorded session has none.
      </p>
    );
  }
  return (
    <section class="budget-history" aria-label="Speed and disk reads">
      {history.length > 1 && (
        <>
          <RunningChart
            history={history}
            time={time}
            label="Speed of the last 16 tokens"
            values={history.tokensPerSecond}
            text={formatSpeed}
          />
          <RunningChart
            history={history}
            time={time}
            label="Read from the disk per token"
            values={history.bytesPerToken}
            text={(value) => formatBytes(Math.round(value))}
          />
        </>
      )}
      <table>
        <thead>
          <tr>
            <th scope="col">Setting</th>
            <th scope="col">Mean speed since this page was opened, without sampling</th>
            <th scope="col">Mean read from the disk per token</th>
          </tr>
        </thead>
        <tbody>
          {settings.map((setting) => (
            <tr key={setting.text}>
              <th scope="row">{setting.text}</th>
              <td>{speedText(setting.tokensPerSecond)}</td>
              <td>{formatBytes(Math.round(setting.bytesPerToken))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function RunningChart(props: {
  history: SpeedHistory;
  time: RunningTime;
  label: string;
  values: Float64Array;
  text: (value: number) => string;
}) {
  const { history, values, time } = props;
  const most = Math.max(...values, 0);
  const max = { x: Math.max(1, time.x.at(-1) ?? 0), y: most * 1.1 };
  const height = 60;
  const starts = beginnings(history.runs);
  const changes = beginnings(history.setting).slice(1);
  const gaps = starts.slice(1).filter((i) => !changes.includes(i));
  const mark = (i: number, name: string) => {
    const at = (time.x[i] ?? 0) - (starts.includes(i) ? time.gap / 2 : 0);
    const x = (at / max.x) * CHART_WIDTH;
    return <line key={`${name} ${i}`} class={name} x1={x} x2={x} y1="0" y2={height} />;
  };
  return (
    <figure>
      <figcaption>
        {props.label}: <b>{props.text(values.at(-1) ?? 0)}</b>
      </figcaption>
      <div class="budget-plot">
        <svg
          viewBox={`0 0 ${CHART_WIDTH} ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${props.label} over the time of generating, at most ${props.text(most)}`}
        >
          {gaps.map((i) => mark(i, 'budget-gap'))}
          {changes.map((i) => mark(i, 'budget-at'))}
          {starts.map((from, i) => (
            <polyline
              key={from}
              class="budget-planned"
              points={polyline(
                lineOf(time.x, values, from, starts[i + 1]),
                max,
                CHART_WIDTH,
                height,
              )}
            />
          ))}
        </svg>
        <Tick at={1 / 1.1} text={props.text(most)} />
        <Tick at={0} text={props.text(0)} />
      </div>
      <p class="budget-ends dim">
        <span>{time.ms > 0 ? `${formatNs(time.ms * 1e6)} of generating` : 'first token'}</span>
        {starts.length > 1 && <span>lines between runs</span>}
        <span>last token</span>
      </p>
    </figure>
  );
}

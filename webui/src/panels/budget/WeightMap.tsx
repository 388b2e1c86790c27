// Where the weights are: what the plan does with each part of the model files, and what is in memory
// now.
import { formatBytes } from '../../format';
import type { MemoryPlan } from '../../net/types';
import type { Store } from '../../state/store';
import { mapColumns } from './curve';
import { TensorTable } from './TensorTable';

const MAP_COLUMNS = 120;

// Two tracks over the bytes of the model files: the plan, and what is in memory now.
export function WeightMap({ store, plan }: { store: Store; plan: MemoryPlan | null }) {
  if (!plan || plan.tensors.length === 0) return null;
  const columns = mapColumns(plan.tensors, MAP_COLUMNS);
  const sum = (of: 'pinned_bytes' | 'streamed_bytes' | 'resident_bytes' | 'file_bytes'): number =>
    plan.tensors.reduce((all, tensor) => all + (tensor[of] ?? 0), 0);
  const total = sum('file_bytes');
  const resident = plan.residency_known ? sum('resident_bytes') : null;
  return (
    <section class="budget-map" aria-label="Weights">
      <h2>The model file, from its first to its last tensor</h2>
      <svg
        viewBox={`0 0 ${MAP_COLUMNS} 40`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Pinned ${formatBytes(sum('pinned_bytes'))}, read for every token ${formatBytes(sum('streamed_bytes'))}, in memory ${resident === null ? 'not known' : formatBytes(resident)} of ${formatBytes(total)}`}
      >
        {columns.map((column, i) => (
          <g key={i}>
            <title>{columnText(column)}</title>
            <rect class="budget-rest" x={i} y="0" width="1.05" height="18" />
            <Part class="budget-streamed" x={i} y={0} share={column.streamed} />
            <Part class="budget-pinned" x={i} y={18 * column.streamed} share={column.pinned} />
            <rect class="budget-rest" x={i} y="22" width="1.05" height="18" />
            <Part
              class="budget-resident"
              x={i}
              y={22 + 18 * (1 - (column.resident ?? 0))}
              share={column.resident ?? 0}
            />
          </g>
        ))}
      </svg>
      <ul class="budget-legend">
        <li class="budget-pinned">pinned {formatBytes(sum('pinned_bytes'))}</li>
        <li class="budget-streamed">read for every token {formatBytes(sum('streamed_bytes'))}</li>
        <li class="budget-resident">
          {resident === null
            ? 'in memory: not known, because the kernel reports it only to users who may write the file'
            : `in memory ${formatBytes(resident)} of ${formatBytes(total)}`}
        </li>
      </ul>
      <TensorTable store={store} tensors={plan.tensors} />
    </section>
  );
}

function Part(props: { class: string; x: number; y: number; share: number }) {
  if (props.share <= 0) return null;
  return (
    <rect class={props.class} x={props.x} y={props.y} width="1.05" height={18 * props.share} />
  );
}

function columnText(column: ReturnType<typeof mapColumns>[number]): string {
  const percent = (share: number): string => `${Math.round(100 * share)} %`;
  const resident = column.resident === null ? '' : `, ${percent(column.resident)} in memory`;
  return `${column.name}: ${percent(column.pinned)} pinned, ${percent(column.streamed)} read for every token${resident}`;
}

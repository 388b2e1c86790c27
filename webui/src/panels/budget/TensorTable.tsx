// The tensors of the model files: what the plan does with each, and what of it is in memory now. The
// numbers of the picture of the weights.
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { exactBytes, formatBytes } from '../../format';
import { nextSort, type Column, type Sort } from '../../grid/column';
import type { MemoryPlan } from '../../net/types';
import type { Store } from '../../state/store';
import { Grid } from '../../ui/Grid';

type Tensor = MemoryPlan['tensors'][number];

// By the key of its column.
const VALUES: Readonly<Record<string, (tensor: Tensor) => number>> = {
  file: ({ file_offset }) => file_offset,
  bytes: ({ file_bytes }) => file_bytes,
  pinned: ({ pinned_bytes }) => pinned_bytes,
  streamed: ({ streamed_bytes }) => streamed_bytes,
  resident: ({ resident_bytes }) => resident_bytes ?? -1,
};

const bytesColumn = (
  key: string,
  title: string,
  bytesOf: (tensor: Tensor) => number | null,
): Column<Tensor> => ({
  key,
  title,
  width: 92,
  align: 'right',
  text: (tensor) => {
    const bytes = bytesOf(tensor);
    return bytes === null ? '' : formatBytes(bytes);
  },
  exact: (tensor) => {
    const bytes = bytesOf(tensor);
    return bytes === null ? 'not known' : exactBytes(bytes);
  },
});

const COLUMNS: readonly Column<Tensor>[] = [
  { key: 'file', title: 'tensor', hint: 'In the order of the file', width: 170, grow: 1, mono: true, text: ({ tensor_name }) => tensor_name }, // prettier-ignore
  bytesColumn('bytes', 'size', ({ file_bytes }) => file_bytes),
  bytesColumn('pinned', 'pinned', ({ pinned_bytes }) => pinned_bytes),
  bytesColumn('streamed', 'read per token', ({ streamed_bytes }) => streamed_bytes),
  bytesColumn('resident', 'in memory', ({ resident_bytes }) => resident_bytes),
];

export function TensorTable({ store, tensors }: { store: Store; tensors: readonly Tensor[] }) {
  const sort = useSignal<Sort>({ key: 'file', descending: false });
  const { key, descending } = sort.value;
  const rows = useMemo(() => {
    const valueOf = VALUES[key] ?? (() => 0);
    return key === 'file' && !descending
      ? tensors
      : tensors.toSorted((a, b) => (valueOf(a) - valueOf(b)) * (descending ? -1 : 1));
  }, [tensors, key, descending]);
  const { selection } = store.navigation.view.value;
  const name = selection?.kind === 'tensor' ? selection.name : null;
  const active = rows.findIndex(({ tensor_name }) => tensor_name === name);
  return (
    <div class="budget-tensors">
      <Grid
        label="Tensors of the model file"
        columns={COLUMNS}
        rows={rows}
        sort={sort.value}
        active={active < 0 ? null : active}
        onSort={(column) => {
          sort.value = nextSort(sort.peek(), column, ['bytes', 'pinned', 'streamed', 'resident']);
        }}
        onActivate={({ tensor_name }) => {
          if (store.open.peek()) store.select({ kind: 'tensor', name: tensor_name });
        }}
      />
    </div>
  );
}

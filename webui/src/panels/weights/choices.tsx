// What the views of the weights are of: model, reference, what errors are weighed by, what cells show.
import type { Store } from '../../state/store';
import { ALL_CELLS, CELLS, type CellsOf } from './weights_options';

export function ModelChoice(props: {
  store: Store;
  label: string;
  model: string | null; // null: none is chosen
  choose: (model: string) => void;
}) {
  const { store, label, model, choose } = props;
  const list = store.models.list.value;
  const models =
    list.is === 'ready' ? list.value.models.filter((one) => !one.importance_matrix) : [];
  return (
    <label>
      {label}{' '}
      <select
        value={model ?? ''}
        onChange={({ currentTarget }) => {
          choose(currentTarget.value);
        }}
      >
        {model === null && <option value="">choose…</option>}
        {models.map(({ id, name }) => (
          <option key={id} value={id}>
            {/* The name of one of several of this name has the id. */}
            {name.includes(id) ? name : `${id} (${name})`}
          </option>
        ))}
      </select>
    </label>
  );
}

// By which importances errors are weighed; nothing if the server has no file of llama-imatrix.
export function MatrixChoice(props: {
  store: Store;
  imatrix: string | null;
  choose: (imatrix: string | null) => void;
}) {
  const { store, imatrix, choose } = props;
  const list = store.models.list.value;
  const files = list.is === 'ready' ? list.value.models.filter((one) => one.importance_matrix) : [];
  if (files.length === 0 && imatrix === null) return null;
  return (
    <label title="Weigh the error of each column by how large its inputs were when llama-imatrix observed them">
      Weighed by{' '}
      <select
        value={imatrix ?? ''}
        onChange={({ currentTarget: { value } }) => {
          choose(value === '' ? null : value);
        }}
      >
        <option value="">nothing</option>
        {imatrix !== null && !files.some(({ id }) => id === imatrix) && (
          <option value={imatrix}>{imatrix}</option>
        )}
        {files.map(({ id }) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </select>
    </label>
  );
}

// By the reads of which session errors are weighed.
export function ReadsChoice(props: {
  store: Store;
  session: string | null;
  choose: (session: string | null) => void;
}) {
  const { store, session, choose } = props;
  const list = store.sessions.page.value;
  const sessions = list.is === 'ready' ? list.value.sessions : [];
  if (sessions.length === 0 && session === null) return null;
  return (
    <label title="Weigh the error of each row by how often this session read it: of experts, those that are often chosen count most">
      Reads of{' '}
      <select
        class="weights-session"
        value={session ?? ''}
        onChange={({ currentTarget: { value } }) => {
          choose(value === '' ? null : value);
        }}
      >
        <option value="">no session</option>
        {session !== null && !sessions.some(({ id }) => id === session) && (
          <option value={session}>{session}</option>
        )}
        {sessions.map(({ id, title }) => (
          <option key={id} value={id}>
            {title === '' ? id : `${title} (${id})`}
          </option>
        ))}
      </select>
    </label>
  );
}

export function CellsChoice({
  cells,
  choose,
}: {
  cells: CellsOf;
  choose: (cells: CellsOf) => void;
}) {
  return (
    <label>
      Cells show{' '}
      <select
        value={cells}
        onChange={({ currentTarget: { value } }) => {
          const found = ALL_CELLS.find((one) => one === value);
          if (found) choose(found);
        }}
      >
        {ALL_CELLS.map((one) => (
          <option key={one} value={one}>
            {CELLS[one].button}
          </option>
        ))}
      </select>
    </label>
  );
}

// What one op read and wrote: every access, its bytes and where they came from.
import { useMemo } from 'preact/hooks';
import { exactBytes, exactNs, formatBytes, formatCount, formatNs, formatShape } from '../format';
import { sentence } from '../net/api';
import type { Access, Op } from '../net/types';
import type { Store } from '../state/store';
import { Empty } from '../ui/Panel';

export function Accesses({ store, op }: { store: Store; op: Op | undefined }) {
  const accesses = useMemo(() => store.select(({ open }) => open?.accesses), [store]).value;
  return (
    <aside class="detail" aria-label="Accesses of the op">
      <header>
        <h3 class="mono">{op?.name}</h3>
        <button
          type="button"
          class="quiet"
          aria-label="Close the accesses"
          title="Close"
          onClick={() => {
            store.selectOp(null);
          }}
        >
          ×
        </button>
      </header>
      {op && <Facts op={op} />}
      {accesses?.is === 'loading' && <Empty>Loading…</Empty>}
      {accesses?.is === 'failed' && <Empty error>{sentence(accesses.error)}</Empty>}
      {accesses?.is === 'ready' && <List accesses={accesses.value} />}
    </aside>
  );
}

function Facts({ op }: { op: Op }) {
  const time = op.end_ns - op.begin_ns;
  return (
    <p class="detail-facts">
      <span class="mono">{op.tensor}</span>
      <span>
        {op.type} {formatShape(op.shape)}
      </span>
      <span title={exactNs(time)}>{formatNs(time)}</span>
      {op.nodes > 1 && <span>{op.nodes} nodes fused</span>}
    </p>
  );
}

function List({ accesses }: { accesses: readonly Access[] }) {
  if (accesses.length === 0) return <Empty>This op touches no memory of its own.</Empty>;
  return (
    <ul class="accesses" tabIndex={0} aria-label="Accesses">
      {accesses.map((access, i) => (
        <li key={i} data-write={access.write}>
          <span class="access-way">{access.write ? 'write' : 'read'}</span>
          <span class="mono access-tensor">{access.tensor}</span>
          <span class="access-bytes" title={exactBytes(access.bytes)}>
            {formatBytes(access.bytes)}
          </span>
          <span class="access-where">{where(access)}</span>
        </li>
      ))}
    </ul>
  );
}

function where(access: Access): string {
  const { file, expert, rank, score } = access;
  const parts: string[] = [access.kind, access.source];
  if (expert !== null) {
    const chosen = rank === null ? '' : `, rank ${rank}`;
    parts.push(`expert ${expert}${chosen}${score === null ? '' : `, score ${score.toFixed(3)}`}`);
  }
  if (file) parts.push(`file ${file.index} at ${formatCount(file.offset)}`);
  else if (access.address !== null) parts.push(access.address);
  return parts.filter(Boolean).join(', ');
}

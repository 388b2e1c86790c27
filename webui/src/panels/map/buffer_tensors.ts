// The tensors in the buffers of a session: the KV cache, repacked weights, and what is computed.
import { ok } from '../../result';
import { perSession, templateOf } from '../../state/session/per_session';
import { Resource } from '../../state/resource';
import { baseName, type BufferTensor } from './map_axes';

export const bufferTensorsOf = perSession((session) => {
  const { api, reconnects } = session.context;
  const template = templateOf(session);
  return new Resource<readonly BufferTensor[]>({
    key: () => (template.value === 0 ? null : String(template.value)),
    load: async (signal) => {
      const step = session.step.peek() ?? 0;
      const rows = await api.query(session.id, bufferSql(step), 10_000, signal);
      if (!rows.ok) return rows;
      const merged = new Map<string, BufferTensor>();
      for (const [text, from, to, source] of rows.value.rows) {
        const name = baseName(String(text));
        const known = merged.get(name);
        merged.set(name, {
          name,
          source: String(source),
          from: Math.min(known?.from ?? Infinity, Number(from)),
          to: Math.max(known?.to ?? 0, Number(to)),
        });
      }
      return ok([...merged.values()]);
    },
    reconnects,
    cacheSize: 4,
  });
});

export const bufferSql = (step: number): string =>
  `SELECT tensor_name, min(tensor_ptr), max(tensor_ptr + tensor_bytes), min(memory_source)
   FROM access
   WHERE step = ${step} AND memory_source IN ('kv', 'repacked', 'compute', 'input') GROUP BY tensor_name`;

// What the plan did for the experts since the budget was set: each figure with its part as a bar.
import type { Memory } from '../../net/types';
import { expertParts } from './experts';

export function ExpertTable({ state }: { state: Memory }) {
  const parts = expertParts(state);
  if (parts.length === 0) return null;
  return (
    <section class="budget-experts" aria-label="Experts">
      <h2>Experts since the budget was set</h2>
      <table>
        <tbody>
          {parts.map(({ name, hint, part, whole, share }) => (
            <tr key={name}>
              <th scope="row" title={hint}>
                {name}
              </th>
              <td>
                <meter
                  min={0}
                  max={1}
                  value={share ?? 0}
                  aria-label={`${name}: ${part} ${whole}`}
                />
              </td>
              <td>{share === null ? '–' : `${(100 * share).toFixed(1)} %`}</td>
              <td>
                {part} <span class="dim">{whole}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

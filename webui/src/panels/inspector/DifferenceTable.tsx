// Rows of two sides with their difference, the largest first, below the totals.
import { useSignal } from '@preact/signals';
import { plural } from '../../format';
import type { ComparedSums } from '../../net/types';
import { comparedText, rowsThatMatter, type ComparedValue } from './compare';

// `of`: what a row is. `names`: of the sides. The rows may be the first of `total`.
export function DifferenceTable(props: {
  of: string;
  names: readonly [string, string];
  found: {
    readonly total: number;
    readonly sums: ComparedSums;
    readonly rows: readonly (ComparedSums & { readonly name: string })[];
  };
  value: ComparedValue;
}) {
  const { of, names, found, value } = props;
  const showAll = useSignal(false);
  const all = found.rows.map((row) => ({ name: row.name, text: comparedText(row, value) }));
  const matter = rowsThatMatter(all.map(({ text }) => text.amount));
  const rows = showAll.value ? all : all.slice(0, matter);
  const left = found.total - rows.length;
  const most = rows.reduce((max, { text }) => Math.max(max, Math.abs(text.amount)), 0);
  const total = comparedText(found.sums, value);
  return (
    <>
      <table class="differences">
        <thead>
          <tr>
            <th scope="col">{of}</th>
            <th scope="col">{names[0]}</th>
            <th scope="col">{names[1]}</th>
            <th scope="col">difference</th>
          </tr>
        </thead>
        <tbody>
          <tr class="total">
            <th scope="row">all</th>
            <td>{total.left}</td>
            <td>{total.right}</td>
            <td>{total.difference}</td>
          </tr>
          {rows.map(({ name, text }) => (
            <tr key={name}>
              <th scope="row" class="mono" title={name}>
                {name}
              </th>
              <td>{text.left}</td>
              <td>{text.right}</td>
              <td>
                <span
                  class="difference-bar"
                  data-less={text.amount < 0}
                  style={{ width: `${most > 0 ? (100 * Math.abs(text.amount)) / most : 0}%` }}
                />
                {text.difference}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {left > 0 && (
        <p class="dim">
          {rows.length === 0
            ? `no difference in ${plural(left, of)}`
            : `and ${plural(left, `more ${of}`)} with ${rows.length < all.length ? 'hardly any' : 'less'} difference`}{' '}
          {rows.length < all.length && (
            <button
              type="button"
              class="link"
              onClick={() => {
                showAll.value = true;
              }}
            >
              Show all
            </button>
          )}
        </p>
      )}
    </>
  );
}

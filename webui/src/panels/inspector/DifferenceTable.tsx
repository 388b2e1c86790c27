// Rows of two sides with their difference, the largest first, below the totals.
import { useSignal, type Signal } from '@preact/signals';
import { plural } from '../../format';
import type { ComparedSums } from '../../net/types';
import { comparedText, rowsThatMatter, type ComparedText, type ComparedValue } from './compare';

// `names`: of the sides. `difference`: "other − this".
export interface Sides {
  readonly names: readonly [string, string];
  readonly hints?: readonly [string, string];
  readonly difference: string;
}

// `of`: what a row is. `all`: what the totals are of. The rows may be the first of `total`.
export function DifferenceTable(props: {
  of: string;
  all: string;
  sides: Sides;
  found: {
    readonly total: number;
    readonly sums: ComparedSums;
    readonly rows: readonly (ComparedSums & { readonly name: string })[];
  };
  value: ComparedValue;
}) {
  const { of, sides, found, value } = props;
  const showAll = useSignal(false);
  const all = found.rows.map((row) => ({ name: row.name, text: comparedText(row, value) }));
  const matter = rowsThatMatter(all.map(({ text }) => text.amount));
  const rows = showAll.value ? all : all.slice(0, matter);
  const left = found.total - rows.length;
  const most = rows.reduce((max, { text }) => Math.max(max, Math.abs(text.amount)), 0);
  return (
    <>
      <table class="differences" aria-label="Differences">
        <SidesHead of={of} sides={sides} />
        <tbody>
          <TotalRow
            name={props.all}
            hint="Of everything, also of what no row has"
            text={comparedText(found.sums, value)}
          />
          {rows.map(({ name, text }) => (
            <tr key={name}>
              <th scope="row" class="mono" title={name}>
                {name}
              </th>
              <td>{text.left}</td>
              <td>{text.right}</td>
              <td>
                <DifferenceBar share={most > 0 ? text.amount / most : 0} />
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
          {rows.length < all.length && <ShowAll all={showAll} />}
        </p>
      )}
    </>
  );
}

export function SidesHead({ of, sides }: { of: string; sides: Sides }) {
  const { names, hints, difference } = sides;
  return (
    <thead>
      <tr>
        <th scope="col">{of}</th>
        <th scope="col" title={hints?.[0]}>
          {names[0]}
        </th>
        <th scope="col" title={hints?.[1]}>
          {names[1]}
        </th>
        <th scope="col" title={`+ and a bar to the right: more in ${names[1]}`}>
          {difference}
        </th>
      </tr>
    </thead>
  );
}

export function TotalRow(props: {
  name: string;
  hint: string;
  text: Omit<ComparedText, 'amount'>;
}) {
  const { name, hint, text } = props;
  return (
    <tr class="total">
      <th scope="row" title={hint}>
        {name}
      </th>
      <td>{text.left}</td>
      <td>{text.right}</td>
      <td>{text.difference}</td>
    </tr>
  );
}

// From the middle: to the right if the second side has more. `share`: -1..1.
export function DifferenceBar({ share }: { share: number }) {
  return (
    <span
      class="difference-bar"
      data-less={share < 0}
      style={{ width: `${50 * Math.abs(share)}%` }}
    />
  );
}

export function ShowAll({ all }: { all: Signal<boolean> }) {
  return (
    <button
      type="button"
      class="link"
      onClick={() => {
        all.value = true;
      }}
    >
      Show all
    </button>
  );
}

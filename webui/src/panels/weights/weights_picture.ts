// The picture of one tensor: its plane, and the value that is pointed at or selected, with its block.
import type { ReadonlySignal } from '@preact/signals';
import type { WeightsValue } from '../../net/types';
import type { Range } from '../../plane/range';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import type { TipText } from '../../ui/tip';
import type { Place } from '../option_parts';
import { ValuePicture } from './value_picture';
import { blockText, blockValuesText, floatText, formulaText, superBlockText } from './value_text';
import { CELLS, type CellsOf, type WeightsOptions } from './weights_options';

const KEPT_VALUES = 256;

export class TensorPicture extends ValuePicture {
  // The value where the pointer rests, or else the selected one.
  readonly value: Resource<WeightsValue>;
  private block: (Place & { readonly x: Range }) | null = null; // of the selected value, when it was known

  constructor(
    store: Store,
    of: { readonly model: string; readonly tensor: string; readonly cells: CellsOf },
    options: ReadonlySignal<WeightsOptions>,
    change: (part: Partial<WeightsOptions>, how: 'push' | 'debounced') => void,
  ) {
    const { model, tensor, cells } = of;
    super(
      store,
      ({ x, y, width, height }, signal) =>
        store.api.weightsPicture(
          model,
          {
            name: tensor,
            value: cells,
            width,
            height,
            ...(x ? { x_from: Math.floor(x.from), x_to: Math.ceil(x.to) } : {}),
            ...(y ? { y_from: Math.floor(y.from), y_to: Math.ceil(y.to) } : {}),
          },
          signal,
        ),
      CELLS[cells],
      options,
      change,
    );
    this.value = new Resource<WeightsValue>({
      key: () => {
        const place = this.place.value;
        return place && `${place.row} ${place.column}`;
      },
      load: (signal) => {
        const { row, column } = this.place.peek() ?? { row: 0, column: 0 };
        return store.api.weightsValue(model, tensor, row, column, signal);
      },
      reconnects: store.connection.reconnects,
      cacheSize: KEPT_VALUES,
    });
  }

  // The columns of the block of the selected value, which stay known while the pointer asks for others.
  protected override columnsOf(at: Place): Range {
    const { row, column } = at;
    const { value } = this.value.state.value;
    if (value?.row === row && value.column === column) {
      const { first, values } = value.block;
      this.block = { row, column, x: { from: first, to: first + values } };
    }
    const known = this.block;
    return known?.row === row && known.column === column ? known.x : super.columnsOf(at);
  }

  protected override describeValue(place: Place, cell: number): Pick<TipText, 'head' | 'lines'> {
    const { ofOne } = this.cells;
    const plain = super.describeValue(place, cell);
    const { value, loadedKey } = this.value.state.peek();
    if (!value || loadedKey !== `${place.row} ${place.column}`) return plain;
    const formula = formulaText(value);
    const superBlock = superBlockText(value);
    const blockValues = blockValuesText(value);
    const exact = floatText(value.value ?? NaN);
    return {
      head: ofOne === '' ? exact : plain.head,
      lines: [
        ...(ofOne === '' ? [] : [['value', exact] as const]),
        ...(formula === null ? [] : [['decoded', formula] as const]),
        ...(superBlock === null ? [] : [['super-block', superBlock] as const]),
        ...(blockValues === null ? [] : [['block', blockValues] as const]),
        ['raw', blockText(value)],
      ],
    };
  }
}

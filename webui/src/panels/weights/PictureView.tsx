// The values of a tensor as a picture, and below it one value and what it is decoded from.
import { signal, type ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { errorText } from '../../net/api';
import type { WeightsValue } from '../../net/types';
import type { Plane } from '../../plane/plane';
import { emptyScale, type Scale } from '../../plane/scale';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { useResource } from '../../ui/hooks';
import { PictureLegend } from './PictureLegend';
import { PicturePlane } from './PicturePlane';
import type { TensorsProps } from './tensors_props';
import {
  blockText,
  blockValuesText,
  floatText,
  formulaText,
  shortText,
  superBlockText,
} from './value_text';
import { CELLS } from './weights_options';
import { TensorPicture } from './weights_picture';

export function PictureView(props: TensorsProps & { tensor: string }) {
  const { store, panel, model, tensor, options, change } = props;
  const parts = useMemo(() => {
    const { cells } = options.peek();
    return {
      picture: new TensorPicture(store, { model, tensor, cells }, options, change),
      scale: signal<Scale>(emptyScale),
      plane: signal<Plane | null>(null),
    };
  }, [store, model, tensor]);
  const { picture, scale, plane } = parts;
  const { reference } = options.value;
  return (
    <>
      <PicturePlane {...{ store, panel, picture, scale, plane }} of={tensor} />
      <div class="weights-foot">
        <Readout picture={picture} tensor={tensor} plane={plane} />
        {reference !== null && reference !== model && (
          <OfReference key={reference} {...{ store, picture, reference, tensor }} />
        )}
        <PictureLegend {...{ store, scale, plane }} cells={CELLS[options.value.cells]} />
      </div>
    </>
  );
}

// The value where the pointer rests, or that is selected, and what it is decoded from.
function Readout(props: {
  picture: TensorPicture;
  tensor: string;
  plane: ReadonlySignal<Plane | null>;
}) {
  const { picture, tensor, plane } = props;
  const { value } = useResource(picture.value);
  useEffect(() => {
    plane.peek()?.describeAgain();
  }, [value]);
  if (!value) {
    return (
      <p role="status" class="weights-readout" tabIndex={0}>
        <b class="mono">{tensor}</b> Zoom in and point at a value, or select one.
      </p>
    );
  }
  const formula = formulaText(value);
  const superBlock = superBlockText(value);
  const blockValues = blockValuesText(value);
  return (
    <p role="status" class="weights-readout" tabIndex={0}>
      <b class="mono">
        {value.tensor}[{value.row}, {value.column}]
      </b>{' '}
      = <b class="weights-value">{floatText(value.value ?? NaN)}</b>
      {formula !== null && ` = ${formula}`}
      {superBlock !== null && ` (${superBlock})`} <span class="mono dim">{blockText(value)}</span>{' '}
      {blockValues !== null && <span class="dim">Values of the block: {blockValues}.</span>}
    </p>
  );
}

// The same value in the model that errors are against.
function OfReference(props: { store: Store; picture: TensorPicture; reference: string; tensor: string }) {
  const { store, picture, reference, tensor } = props;
  const resource = useMemo(
    () =>
      new Resource<WeightsValue>({
        key: () => {
          const place = picture.place.value;
          return place && `${place.row} ${place.column}`;
        },
        load: (signal) => {
          const { row, column } = picture.place.peek() ?? { row: 0, column: 0 };
          return store.api.weightsValue(reference, tensor, row, column, signal);
        },
        reconnects: store.connection.reconnects,
      }),
    [store, picture, reference, tensor],
  );
  const { value: other, error } = useResource(resource);
  const { value } = useResource(picture.value);
  const isSame = value !== null && other?.row === value.row && other.column === value.column;
  const [mine, its] = [value?.value ?? NaN, other?.value ?? NaN];
  return (
    <p class="weights-reference">
      <span class="dim">reference {reference}:</span>{' '}
      {error ? (
        <span class="dim">{errorText(error)}</span>
      ) : (
        isSame && (
          <>
            <b>{floatText(its)}</b> <span class="dim">difference {shortText(mine - its)}</span>
          </>
        )
      )}
    </p>
  );
} // prettier-ignore

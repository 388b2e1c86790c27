// A picture of values: the plane, or why there is none.
import type { Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Plane } from '../../plane/plane';
import { PlaneView } from '../../plane/PlaneView';
import type { Scale } from '../../plane/scale';
import type { Store } from '../../state/store';
import { Failed, Loading } from '../../ui/States';
import type { ValuePicture } from './value_picture';

// `of`: the name of the array. Destroys `picture` when another one takes its place.
export function PicturePlane(props: {
  store: Store;
  panel: string;
  of: string;
  picture: ValuePicture;
  scale: Signal<Scale>;
  plane: Signal<Plane | null>;
}) {
  const { store, panel, of, picture, scale, plane } = props;
  useEffect(
    () => () => {
      picture.destroy();
    },
    [picture],
  );
  const error = picture.source.error.value;
  const scene = picture.scene.value;
  return (
    <div class="map-body">
      <PlaneView
        label={`Values of ${of} by row and column. Arrow keys move, Enter selects a value, which is described below.`}
        model={picture}
        scale={scale}
        plane={plane}
        register={(viewport) => store.shell.registerViewport(panel, viewport)}
        tip={(place, shown) => picture.describe(place.hit, shown)}
      />
      {error ? (
        <Failed
          what="The picture cannot be shown."
          error={error}
          retry={() => {
            picture.reload();
          }}
        />
      ) : (
        !scene && <Loading>Reading the values…</Loading>
      )}
    </div>
  );
}

// The values of a model's weights: all tensors, and one as a histogram and as a picture. Read from the
// files of the model; nothing is run.
import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import './weights.css';
import { isWholeCamera, wholeCamera } from '../../plane/camera';
import { IconButton } from '../../ui/Button';
import { usePart } from '../../ui/hooks';
import { Segmented } from '../../ui/Segmented';
import { Empty } from '../../ui/States';
import type { PanelProps } from '../panel';
import { CellsChoice, MatrixChoice, ModelChoice, ReadsChoice } from './choices';
import { ErrorsView } from './ErrorsView';
import { HistogramView } from './HistogramView';
import { PictureView } from './PictureView';
import { TensorsView } from './TensorsView';
import type { Change } from './tensors_props';
import { decodeWeights, encodeWeights, VIEWS, type WeightsView } from './weights_options';

const VIEW_NAMES: Readonly<Record<WeightsView, string>> = {
  tensors: 'Tensors',
  errors: 'Errors',
  histogram: 'Histogram',
  picture: 'Picture',
};

export function WeightsPanel({ store, panel }: PanelProps) {
  const options = useMemo(
    () => computed(() => decodeWeights(store.navigation.view.value.options[panel] ?? '')),
    [store, panel],
  );
  const change: Change = (part, how) => {
    store.navigation.setOptions(panel, encodeWeights({ ...options.peek(), ...part }), how);
  };
  const { show, tensor, cells } = options.value;
  const model = usePart(() => options.value.model ?? store.models.current.value?.id ?? null);
  if (model === null) return <Empty>The server has no model whose weights could be shown.</Empty>;
  return (
    <>
      <div class="toolbar">
        <ModelChoice
          store={store}
          label="Model"
          model={model}
          choose={(one) => {
            change({ model: one, at: null }, 'push');
          }}
        />
        <Segmented
          label="View of the weights"
          value={show}
          options={VIEWS.map((one) => ({ value: one, text: VIEW_NAMES[one] }))}
          choose={(one) => {
            change({ show: one }, 'push');
          }}
        />
        {show === 'errors' && (
          <>
            <ModelChoice
              store={store}
              label="Reference"
              model={options.value.reference}
              choose={(reference) => {
                change({ reference }, 'push');
              }}
            />
            <MatrixChoice
              store={store}
              imatrix={options.value.imatrix}
              choose={(imatrix) => {
                change({ imatrix }, 'push');
              }}
            />
            <ReadsChoice
              store={store}
              session={options.value.session}
              choose={(session) => {
                change({ session }, 'push');
              }}
            />
          </>
        )}
        {show === 'picture' && (
          <CellsChoice
            cells={cells}
            choose={(one) => {
              change({ cells: one }, 'push');
            }}
          />
        )}
        <span class="toolbar-end" />
        {show === 'picture' && (
          <IconButton
            icon="fit"
            label="Show the whole tensor"
            hint="0"
            disabled={isWholeCamera(options.value.camera)}
            onClick={() => {
              change({ camera: wholeCamera }, 'push');
            }}
          />
        )}
      </div>
      {show === 'tensors' ? (
        <TensorsView key={model} {...{ store, panel, model, options, change }} />
      ) : show === 'errors' ? (
        <ErrorsView
          key={`${model} ${options.value.reference ?? ''} ${options.value.imatrix ?? ''} ${options.value.session ?? ''}`}
          {...{ store, panel, model, options, change }}
        />
      ) : tensor === null ? (
        <Empty>Choose a tensor in the list of tensors.</Empty>
      ) : show === 'histogram' ? (
        <HistogramView key={`${model} ${tensor}`} {...{ store, model, tensor }} />
      ) : (
        <PictureView
          key={`${model} ${tensor} ${cells}`}
          {...{ store, panel, model, tensor, options, change }}
        />
      )}
    </>
  );
}

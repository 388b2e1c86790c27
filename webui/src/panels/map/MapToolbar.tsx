// The controls of the map: presets, axes, value, colours, legend.
import type { Palette } from '../../plane/colours';
import { PALETTES } from '../../plane/colours';
import type { OpenSession } from '../../state/session/open_session';
import { expertRows, parseFilter, restFilter } from '../../state/view/filter';
import { filteredSums } from '../../state/view/range_query';
import type { Store } from '../../state/store';
import { Check } from '../../ui/Check';
import { usePart } from '../../ui/hooks';
import { Menu } from '../../ui/Menu';
import { Unused } from '../../ui/Unused';
import type { MapModel } from './map_model';
import {
  PRESETS,
  VALUES,
  X_AXES,
  Y_AXES,
  presetOf,
  type MapOptions,
  type MapValue,
  type XAxis,
  type YAxis,
} from './map_options';
import { axisName, valueName } from './units';

const PALETTE_NAMES: Readonly<Record<Palette, string>> = {
  viridis: 'viridis',
  cividis: 'cividis',
  heat: 'cold–hot',
  grey: 'grey',
};

const OWN_AXES = ''; // no preset

export function MapToolbar(props: { store: Store; session: OpenSession; model: MapModel }) {
  const { model, session, store } = props;
  const options = model.options.value;
  const info = session.info.value;
  const hasExperts = info.is === 'ready' && (info.value.n_experts ?? 0) > 0;
  const hasHeads = info.is === 'ready' && (info.value.n_heads ?? 0) > 0;
  const preset = presetOf(options);
  const presets = PRESETS.filter((one) => one.experts !== true || hasExperts);
  const filter = usePart(() => store.navigation.view.value.filter);
  const ranges = usePart(() => ignoredRanges(store, model).join('\n'));
  const ignored = [
    ...ignoredWords(filter, store.layers.value, options),
    ...ranges.split('\n').filter(Boolean),
  ];
  return (
    <div class="toolbar map-tools">
      <Choice
        label="Preset"
        hint={preset?.hint ?? 'Rows and columns that belong together'}
        hidden
        value={preset?.id ?? OWN_AXES}
        values={[...(preset ? [] : [OWN_AXES]), ...presets.map(({ id }) => id)]}
        text={(id) => presets.find((one) => one.id === id)?.title ?? 'own axes'}
        choose={(id) => {
          const chosen = presets.find((one) => one.id === id);
          if (chosen) model.changeAxes(chosen.options);
        }}
      />
      <Choice
        label="Rows"
        value={options.y}
        values={Y_AXES.filter(
          (axis) => (axis !== 'expert' || hasExperts) && (axis !== 'head' || hasHeads),
        )}
        text={axisName}
        choose={(y: YAxis) => {
          model.changeAxes({ y });
        }}
      />
      <Choice
        label="Columns"
        value={options.x}
        values={X_AXES}
        text={axisName}
        choose={(x: XAxis) => {
          model.changeAxes({ x });
        }}
      />
      <Choice
        label="Colour"
        value={options.value}
        values={VALUES}
        text={valueName}
        choose={(value: MapValue) => {
          model.change({ value, shown: null });
        }}
      />
      <Menu label="Display" title="Colours and lens">
        <div class="map-display">
          <Check
            class="toggle"
            text="log"
            hint="Logarithmic colour scale"
            on={options.log}
            set={(log) => {
              model.change({ log });
            }}
          />
          <Choice
            label="Scale"
            value={options.palette}
            values={PALETTES}
            text={(palette: Palette) => PALETTE_NAMES[palette]}
            choose={(palette: Palette) => {
              model.change({ palette });
            }}
          />
          <Check
            class="toggle"
            text="Lens"
            hint="Magnifies what is under the pointer: what is smaller than a pixel becomes visible"
            on={options.lens}
            set={(lens) => {
              model.change({ lens });
            }}
          />
        </div>
      </Menu>
      <span class="toolbar-end" />
      <Unused words={ignored} />
      <Check
        class="toggle"
        text="Totals"
        hint="The rows and their totals as a table"
        on={options.table}
        set={(table) => {
          model.change({ table });
        }}
      />
    </div>
  );
}

// The words of the filter that the map cannot honour.
function ignoredWords(filter: string, layers: number, { y }: MapOptions): readonly string[] {
  const terms = parseFilter(filter);
  const { missing } = restFilter(terms, layers);
  const hasRows = y === 'expert' && expertRows(terms) !== null;
  return missing.filter(({ key }) => key !== 'expert' || !hasRows).map(({ text }) => text);
}

// The parts of the range that this map neither has as axes nor can apply as a filter.
function ignoredRanges(store: Store, { filter: range }: MapModel): readonly string[] {
  const { phase } = store.navigation.view.value;
  return filteredSums({ phase, filter: '', range: range.value }, store.layers.value).missing;
}

function Choice<T extends string>(props: {
  label: string;
  hint?: string; // absent: the label
  hidden?: boolean; // the label
  value: T;
  values: readonly T[];
  text: (value: T) => string;
  choose: (value: T) => void;
}) {
  return (
    <label class="choice" title={props.hint ?? props.label}>
      {props.hidden !== true && <span>{props.label}</span>}
      <select
        aria-label={props.label}
        value={props.value}
        onChange={(event) => {
          props.choose(event.currentTarget.value as T);
        }}
      >
        {props.values.map((value) => (
          <option key={value} value={value}>
            {props.text(value)}
          </option>
        ))}
      </select>
    </label>
  );
}

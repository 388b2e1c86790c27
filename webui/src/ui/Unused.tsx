import { meantFilter, unknownKey } from '../state/view/filter';

// A view that cannot honour a part of the filter or of the range says so; the filter bar reports unknown keys.
export function Unused(props: { words: readonly string[] }) {
  const words = props.words.filter((word) => unknownKey(word) === null);
  if (words.length === 0) return null;
  const meant = meantFilter(words);
  return (
    <span
      class="warn"
      title="These parts of the filter or of the selected range do not apply in this view."
    >
      ignores {words.join(words.some((word) => word.includes(' ')) ? ', ' : ' ')}
      {meant && `. Did you mean ${meant}?`}
    </span>
  );
}

import { meantFilter } from '../state/filter';

// A view that cannot honour a part of the filter says so.
export function Unused({ words }: { words: readonly string[] }) {
  if (words.length === 0) return null;
  const meant = meantFilter(words);
  return (
    <span class="warn" title="These parts of the filter do not apply in this view.">
      ignores {words.join(' ')}
      {meant && `. Did you mean ${meant}?`}
    </span>
  );
}

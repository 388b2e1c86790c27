import type { Store } from '../../state/store';
import { comparisonOptions, comparisonText, type ComparisonOptions } from './compare';

// Changes what comparisons in the inspector show.
export function setComparison(store: Store, change: Partial<ComparisonOptions>): void {
  const { navigation } = store;
  const now = comparisonOptions(navigation.view.peek().options.inspector);
  navigation.setOptions('inspector', comparisonText({ ...now, ...change }), 'push');
}

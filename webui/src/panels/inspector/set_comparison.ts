import type { Store } from '../../state/store';
import { comparisonText, type ComparedValue } from './compare';

// Changes what comparisons in the inspector show.
export function setComparison(store: Store, value: ComparedValue): void {
  store.navigation.setOptions('inspector', comparisonText(value), 'push');
}

import { computed } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Loaded, Resource } from '../state/resource';

// Selects a part of the state. The component renders again only if the part changes. `part` may use the
// properties of the component: it is evaluated in each of its renderings. (useComputed keeps the value of
// the first properties until a signal changes.)
export function usePart<T>(part: () => T): T {
  return computed(part).value;
}

// The state of a resource. The resource is active while the component is mounted.
export function useResource<T>(resource: Resource<T>): Loaded<T> {
  useEffect(() => resource.use(), [resource]);
  return resource.state.value;
}

// Like useResource, but without the value of the previous key while a new key is loading, unless
// `keep` is set.
export function useExact<T>(resource: Resource<T>, keep = false): Loaded<T> {
  const loaded = useResource(resource);
  return keep || loaded.loadedKey === loaded.key ? loaded : { ...loaded, value: null };
}

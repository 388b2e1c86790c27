import { useComputed } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Loaded, Resource } from '../state/resource';

// A part of the state: the component draws again only when it changes.
export function usePart<T>(part: () => T): T {
  return useComputed(part).value;
}

// What a resource has; it is read as long as the component is there.
export function useResource<T>(resource: Resource<T>): Loaded<T> {
  useEffect(() => resource.use(), [resource]);
  return resource.state.value;
}

// The same, but nothing while another key is read: for what makes no sense
// beside what is already new.
export function useExact<T>(resource: Resource<T>): Loaded<T> {
  const loaded = useResource(resource);
  return loaded.of === loaded.key ? loaded : { ...loaded, value: null };
}

import { keyCaps } from '../commands/keys';

export function Keys({ keys }: { keys: readonly string[] }) {
  return (
    <span class="keys">
      {keys.map((key, i) => (
        <span key={key}>
          {i > 0 && <span class="keys-or"> or </span>}
          {keyCaps(key).map((cap) => (
            <kbd key={cap}>{cap}</kbd>
          ))}
        </span>
      ))}
    </span>
  );
}

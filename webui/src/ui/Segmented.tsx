// A segmented control: radio buttons drawn as one control.
import { useId } from 'preact/hooks';

export function Segmented<T extends string>(props: {
  label: string;
  value: T | null; // null: none is chosen
  options: readonly { value: T; text: string; hint?: string; disabled?: boolean }[];
  choose: (value: T) => void;
}) {
  const group = useId(); // two controls with the same label are two groups
  return (
    <div class="segmented" role="radiogroup" aria-label={props.label}>
      {props.options.map((option) => (
        <label key={option.value} title={option.hint} data-disabled={option.disabled}>
          <input
            type="radio"
            name={group}
            value={option.value}
            checked={option.value === props.value}
            disabled={option.disabled}
            onChange={() => {
              props.choose(option.value);
            }}
          />
          <span>{option.text}</span>
        </label>
      ))}
    </div>
  );
}

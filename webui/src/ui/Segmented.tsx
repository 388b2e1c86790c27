// A segmented control: radio buttons drawn as one control.
export function Segmented<T extends string>(props: {
  label: string;
  value: T | null; // null: none is chosen
  options: readonly { value: T; text: string; hint?: string; disabled?: boolean }[];
  choose: (value: T) => void;
}) {
  return (
    <div class="segmented" role="radiogroup" aria-label={props.label}>
      {props.options.map((option) => (
        <label key={option.value} title={option.hint} data-disabled={option.disabled}>
          <input
            type="radio"
            name={props.label}
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

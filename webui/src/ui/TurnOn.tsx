// The setting with which the next run records what a view lacks.

export function TurnOn(props: { title: string; isOn: boolean; set: () => void }) {
  const { title, isOn, set } = props;
  if (isOn) return <span>The next run records it: the setting {title} is on.</span>;
  return (
    <span>
      <button type="button" class="small" onClick={set}>
        Turn on {title}
      </button>{' '}
      for the next run.
    </span>
  );
}

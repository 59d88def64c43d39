# Counts the lives of a task in the folder $out, and goes on once all tasks of the job have begun this one: the $life-th.
me=$PAI_CURRENT_TASK_ROLE_NAME-$PAI_TASK_INDEX
echo life >>"$out/$me"
life=$(wc -l <"$out/$me")
for task in $(echo "$PAI_TASK_ROLE_INSTANCES" | tr :, '- '); do
	until [ -e "$out/$task" ] && [ "$(wc -l <"$out/$task")" -ge "$life" ]; do sleep 0.05; done
done

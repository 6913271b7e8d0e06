# The guest's first process. It runs the scripts that appear in /mnt, which the machine outside sees too, in the order
# of their numbers and side by side, and leaves what each said and its exit status beside it.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
while read -r name major minor; do mknod -m 666 "/dev/$name" c "$major" "$minor"; done <<LIST
null 1 3
zero 1 5
random 1 8
urandom 1 9
tty 5 0
LIST
ln -s /proc/self/fd /dev/fd

# Nobody ever writes into this: waiting for it is sleeping, without a program for it.
mkfifo /run/silence
exec 9<>/run/silence
next=0
while :; do
  script=/mnt/$next
  if [ -e "$script" ]; then
    (
      bash "$script" >"$script.out" 2>"$script.err" </dev/null
      echo "$?" >"$script.status"
    ) 9<&- &
    next=$((next + 1))
  else
    read -r -t 0.02 -u 9
  fi
done

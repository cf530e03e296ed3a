# In a guest that the host drives: runs each line that comes, and says when it has.
. /vm/check.sh
stty -F /dev/ttyS1 -echo
exec 3< /dev/ttyS1
echo ready > /dev/ttyS1
while read -r line <&3; do
    eval "$line" > /dev/ttyS1 2>&1
    echo '@@ done' > /dev/ttyS1
done
